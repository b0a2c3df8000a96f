"""Frames of AWS' event streams, taken apart and put together again with other payloads.

See `connectors.decoding.framing.aws_eventstream` for the format.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

_PRELUDE = struct.Struct(">III")
_CRC = struct.Struct(">I")


class Frame(NamedTuple):
    """A frame: its headers as they are, its payload, and how many bytes it had; `headers` is None for other bytes."""

    headers: bytes | None
    payload: bytes
    size: int


def split_frames(body: bytes) -> list[Frame]:
    """Return the frames of a body; what is no whole frame, at the end or where the stream is damaged, is the last."""
    frames: list[Frame] = []
    position = 0
    while position + _PRELUDE.size + _CRC.size <= len(body):
        total, headers, checksum = _PRELUDE.unpack_from(body, position)
        end, payload = position + total, position + _PRELUDE.size + headers
        if crc32(body[position : position + 8]) != checksum or end > len(body) or payload > end - _CRC.size:
            break
        frames.append(Frame(body[position + _PRELUDE.size : payload], body[payload : end - _CRC.size], total))
        position = end
    if position < len(body):
        frames.append(Frame(None, body[position:], len(body) - position))
    return frames


def join_frames(frames: Sequence[Frame], payloads: Sequence[bytes]) -> list[bytes]:
    """Return the bytes of each frame with another payload, its checksums right."""
    return [_frame(frame.headers, payload) for frame, payload in zip(frames, payloads, strict=True)]


def _frame(headers: bytes | None, payload: bytes) -> bytes:
    if headers is None:
        return payload
    prelude = struct.pack(">II", _PRELUDE.size + len(headers) + len(payload) + _CRC.size, len(headers))
    frame = prelude + _CRC.pack(crc32(prelude)) + headers + payload
    return frame + _CRC.pack(crc32(frame))
