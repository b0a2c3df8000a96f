"""Frames: the messages between the sidecar's workers and the process of a runtime, over a Unix socket.

A frame is a header of nine bytes, `>IIB` (the payload's length, the number of its call, its kind), and a payload. A
connection carries any number of calls at once. The worker numbers them, each number once, from 1 on.

A call begins with PREDICT or STREAM, whose payload is an inference request in JSON, and ends with END or ERROR:

    worker  -> PREDICT {"inputs": [...]}          worker  -> STREAM {"inputs": [...]}
    process -> DATA    {"outputs": [...]}         worker  -> INPUT  {"inputs": [...]}    any number
    process -> END                                worker  -> INPUT_END                   no further requests
                                                  process -> READ                        the model waits for a request
                                                  process -> DATA   {"outputs": [...]}   any number, each one response
                                                  worker  -> CREDIT 32768
                                                  process -> END

A request of a custom handler is a call of one frame each way:

    worker  -> HANDLE  message        process -> DATA message        process -> END

where a message is an HTTP message: four bytes, `>I`, the length of its head; the head in JSON; its body as it is. The
head of a request is `{"method", "path", "query", "headers"}`, the path decoded, the query as it was sent; that of a
response `{"status", "headers"}`. Headers are a list of pairs of a name in lower case and a value.

ERROR has a JSON object `{"status", "is_own", "type", "reason"}`; `is_own` says that the model itself has given the
status. Flow control is by credit, for each call: the process may send
INITIAL_CREDIT bytes of DATA payloads, and as many more as CREDIT grants; the payload that exceeds the credit is sent
whole, and no DATA of that call after it until there is credit again. The requests of a stream behind the first are
sent one by one: the process asks for each by READ, when its model waits for it and none has come, and gets one INPUT or
INPUT_END; so none waits unread in the process. Where there are no further requests, INPUT_END follows STREAM at once,
and a READ that it crosses is dropped. CANCEL ends a call for the worker: what still
comes of it is dropped. A connection that ends cancels all of its calls.
"""

import json
import struct
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any

HEADER = struct.Struct(">IIB")
CREDIT = struct.Struct(">I")
HEAD_LENGTH = struct.Struct(">I")
INITIAL_CREDIT = 64 * 1024  # bytes of DATA of one call
MAX_PAYLOAD = 64 * 1024 * 1024


class Kind(IntEnum):
    """What a frame is."""

    PREDICT = 1
    STREAM = 2
    INPUT = 3
    INPUT_END = 4
    CREDIT = 5
    CANCEL = 6
    HANDLE = 7
    DATA = 16
    END = 17
    ERROR = 18
    READ = 19


class MalformedFrame(ValueError):
    """The other side does not speak this protocol."""


def frame(call: int, kind: int, payload: bytes = b"") -> bytes:
    """Encode one frame."""
    return HEADER.pack(len(payload), call, kind) + payload


def pack_message(head: Mapping[str, Any], body: bytes) -> bytes:
    """Encode an HTTP message as the payload of HANDLE, or of DATA in response to it."""
    encoded = json.dumps(head, separators=(",", ":")).encode()
    return HEAD_LENGTH.pack(len(encoded)) + encoded + body


def unpack_message(payload: bytes) -> tuple[dict[str, Any], bytes]:
    """Return head and body of an HTTP message; MalformedFrame if it is malformed."""
    try:
        (length,) = HEAD_LENGTH.unpack_from(payload)
        start = HEAD_LENGTH.size
        head = json.loads(payload[start : start + length])
    except (struct.error, ValueError) as error:
        raise MalformedFrame("An HTTP message whose head cannot be read") from error
    if not isinstance(head, dict):
        raise MalformedFrame("An HTTP message whose head is no object")
    return head, payload[start + length :]


class FrameParser:
    """Splits received bytes into frames, in linear time, however the bytes are cut."""

    __slots__ = ("_needed", "_parts", "_size")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._needed = HEADER.size  # bytes needed for the next frame

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Yield call, kind and payload of each complete frame; to be exhausted before the next `feed`.

        MalformedFrame for a payload of more than MAX_PAYLOAD bytes.
        """
        if self._parts:
            self._parts.append(data)
            self._size += len(data)
            if self._size < self._needed:
                return
            data = b"".join(self._parts)
            self._parts.clear()
        position, end = 0, len(data)
        unpack, header = HEADER.unpack_from, HEADER.size
        needed = header
        while end - position >= header:
            length, call, kind = unpack(data, position)
            if length > MAX_PAYLOAD:
                raise MalformedFrame(f"A frame of {length} bytes; {MAX_PAYLOAD} are allowed")
            after = position + header + length
            if after > end:
                needed = header + length
                break
            yield call, kind, data[position + header : after]
            position = after
        if position < end:
            self._parts.append(data[position:])
        self._size, self._needed = end - position, needed
