"""AWS event-stream framing (application/vnd.amazon.eventstream): binary frames, each with two checksums.

    total length u32 | headers length u32 | CRC of these 8 bytes | headers | payload | CRC of all bytes before it

An exception or error frame ends the stream with an UpstreamError; the events before it are delivered.
Specification: https://smithy.io/2.0/aws/amazon-eventstream.html.
"""

import struct
from typing import Any
from zlib import crc32

from opensearch_ml_stream.connectors.decoding.contract import MAX_EVENT_BYTES, too_large, truncated
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider_errors import read_error
from opensearch_ml_stream.connectors.syntax import provider_json

MAX_HEADERS_BYTES = 128 * 1024

_PRELUDE = struct.Struct(">III")
_CRC = struct.Struct(">I")
_FIXED_BYTES = _PRELUDE.size + _CRC.size
_STRING = 7
# Size of a header value in bytes by its type; None where a u16 before the value holds it.
_VALUE_BYTES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 6: None, _STRING: None, 8: 8, 9: 16}


class AWSEventStreamFraming:
    """Event frames, named by their `:event-type`. A frame is an event once it is whole and both its CRCs agree."""

    __slots__ = ("_buffer", "_frame_bytes", "_headers_bytes", "error")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._frame_bytes = 0  # of the unfinished frame, 0 before its prelude is read
        self._headers_bytes = 0
        self.error: UpstreamError | None = None

    def feed(self, data: bytes) -> list[Event]:
        """Return the events whose frames end within `data`."""
        events: list[Event] = []
        if self.error is not None:
            return events
        self._buffer += data
        start = 0
        try:
            while self._has_frame(start):
                frame = bytes(memoryview(self._buffer)[start : start + self._frame_bytes])
                start += self._frame_bytes
                self._frame_bytes = 0
                events.append(_read_frame(frame, self._headers_bytes))
        except UpstreamError as error:
            self.error = error
        del self._buffer[:start]
        return events

    def close(self) -> list[Event]:
        """Set `error` if the body ended within a frame."""
        if self._buffer and self.error is None:
            self.error = truncated("the end of a frame")
        return []

    def _has_frame(self, start: int) -> bool:
        buffered = len(self._buffer) - start
        if not self._frame_bytes:
            if buffered < _PRELUDE.size:
                return False
            self._read_prelude(start)
        return buffered >= self._frame_bytes

    def _read_prelude(self, start: int) -> None:
        total, headers, checksum = _PRELUDE.unpack_from(self._buffer, start)
        if crc32(memoryview(self._buffer)[start : start + 8]) != checksum:
            raise UpstreamError("The provider's event stream is damaged: the checksum of a frame's prelude is wrong")
        if headers > MAX_HEADERS_BYTES or total - headers > MAX_EVENT_BYTES + _FIXED_BYTES:
            raise too_large()
        if total < headers + _FIXED_BYTES:
            raise UpstreamError("The provider's event stream is damaged: a frame is shorter than its headers")
        self._frame_bytes = total
        self._headers_bytes = headers


def _read_frame(frame: bytes, headers_bytes: int) -> Event:
    if crc32(memoryview(frame)[:-4]) != _CRC.unpack_from(frame, len(frame) - 4)[0]:
        raise UpstreamError("The provider's event stream is damaged: the checksum of a frame is wrong")
    headers_end = _PRELUDE.size + headers_bytes
    try:
        headers = _read_headers(frame, headers_end)
    except (struct.error, KeyError, UnicodeDecodeError, IndexError, ValueError):
        raise UpstreamError("The provider's event stream is damaged: a frame's headers cannot be read") from None
    kind = headers.get(":message-type", "event")
    payload = frame[headers_end:-4]
    if kind == "exception":
        raise _exception(headers.get(":exception-type", ""), payload)
    if kind == "error":
        name = headers.get(":error-code", "")
        raise _error(name, headers.get(":error-message"))
    return Event(headers.get(":event-type", ""), payload)


def _read_headers(frame: bytes, end: int) -> dict[str, str]:
    """Return the headers that are strings. Raises for any header that does not fit, whatever its type."""
    headers: dict[str, str] = {}
    names: set[bytes] = set()
    position = _PRELUDE.size
    while position < end:
        value_at = position + 1 + frame[position]
        name = frame[position + 1 : value_at]
        kind = frame[value_at]
        size = _VALUE_BYTES[kind]
        value_at += 1
        if size is None:
            size = struct.unpack_from(">H", frame, value_at)[0]
            value_at += 2
        position = value_at + size
        if position > end or name in names:
            raise ValueError
        names.add(name)
        if kind == _STRING:
            headers[name.decode()] = frame[value_at:position].decode()
    return headers


def _exception(name: str, payload: bytes) -> UpstreamError:
    try:
        body: Any = provider_json.loads(payload)
    except ValueError:
        body = None
    return _error(name, body if isinstance(body, dict) else None)


def _error(name: str, said: object) -> UpstreamError:
    """Return the error of an exception's name and what it says: an object, or the message. AWS's own fault is 500."""
    error = read_error(said or name, name)
    error.provider_status = error.provider_status or 500
    if error.provider_status == 429 and name.lower() == "throttlingexception":
        error.type = "remote_connector_throttling_exception"
    return error
