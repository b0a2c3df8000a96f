"""Parses response heads: status, headers and how the body ends. httptools does it, as strictly as node.js."""

from collections.abc import Container, Mapping
from dataclasses import dataclass

import httptools

from opensearch_ml_stream.plugin.upstream.http1.bodies import Body, ChunkedBody, CloseBody, LengthBody

MAX_HEAD_BYTES = 64 * 1024  # interim responses included; node and nginx stop at 16 and 32 KiB
_BLANK_LINE = b"\r\n\r\n"


class MalformedHead(Exception):
    """The bytes are not the head of an HTTP/1.1 response to our request; the message holds none of them."""


@dataclass(frozen=True, slots=True)
class Head:
    """A response head. Header names are in lower case, values of the same name joined by ", "."""

    status: int
    headers: Mapping[str, str]
    keep_alive: bool


class HeadBuffer:
    """Collects bytes until a head is complete up to its blank line."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes, limit: int = MAX_HEAD_BYTES) -> tuple[bytes, bytes] | None:
        """Return the head and the bytes after it, None while it is incomplete.

        MalformedHead if it is larger than `limit` bytes, or if it does not begin as HTTP does.
        """
        buffer = self._buffer + data if self._buffer else data
        end = buffer.find(_BLANK_LINE, max(0, len(self._buffer) - 3)) + 4
        if (len(buffer) if end < 4 else end) > limit:
            raise MalformedHead(f"its head is larger than {MAX_HEAD_BYTES} bytes")
        if end < 4:
            _check_start(buffer)
            self._buffer = buffer
            return None
        self._buffer = b""
        return buffer[:end], buffer[end:]


class ResponseHeadParser:
    """Collects bytes until the head of the final response is complete; interim responses (1xx) are skipped."""

    __slots__ = ("_buffer", "_skipped_bytes")

    def __init__(self) -> None:
        self._buffer = HeadBuffer()
        self._skipped_bytes = 0

    def feed(self, data: bytes) -> tuple[Head, bytes] | None:
        """Return the head and the bytes after it, None while it is incomplete. MalformedHead if it is not HTTP/1.1."""
        while (complete := self._buffer.feed(data, MAX_HEAD_BYTES - self._skipped_bytes)) is not None:
            raw, data = complete
            head = read_head(raw)
            if head.status >= 200:
                return head, data
            self._skipped_bytes += len(raw)
        return None


class _FieldCallbacks:
    """Callbacks of httptools."""

    __slots__ = ("fields",)

    def __init__(self) -> None:
        self.fields: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name.lower(), value))


@dataclass(frozen=True, slots=True)
class ParsedHead:
    """The status line and the header fields of a head as they came, but for the names: they are in lower case."""

    status: int
    version: str
    fields: list[tuple[bytes, bytes]]

    def head(self, names: Container[bytes] | None = None) -> Head:
        """Return the Head, with the header fields of these names only if `names` is given ("connection" among them)."""
        headers: dict[str, str] = {}
        for name, value in self.fields:
            if names is None or name in names:
                key, text = name.decode("latin-1"), value.decode("latin-1")
                headers[key] = f"{headers[key]}, {text}" if key in headers else text
        options = {option.strip().lower() for option in headers.get("connection", "").split(",")}
        keep_alive = "close" not in options and (self.version == "1.1" or "keep-alive" in options)
        return Head(self.status, headers, keep_alive)


def parse_head(raw: bytes) -> ParsedHead:
    """Parse a head that is complete up to its blank line. MalformedHead if it is not HTTP/1.1, or status 101."""
    callbacks = _FieldCallbacks()
    parser = httptools.HttpResponseParser(callbacks)
    try:
        parser.feed_data(raw)
    except httptools.HttpParserUpgrade:
        raise MalformedHead("it changes the protocol, which was not asked for") from None
    except httptools.HttpParserError:
        raise MalformedHead("its head cannot be read") from None
    status = parser.get_status_code()
    if status == 101 or status < 100:
        raise MalformedHead(f"status {status} was not asked for")
    return ParsedHead(status, parser.get_http_version(), callbacks.fields)


def read_head(raw: bytes) -> Head:
    """Return the Head of a head that is complete up to its blank line. MalformedHead as `parse_head`."""
    return parse_head(raw).head()


def body_of(head: Head) -> Body:
    """Return a Body for the way in which the response ends. MalformedHead if that is unclear or unsupported."""
    if head.status in (204, 304):
        return LengthBody(0)
    coding = head.headers.get("transfer-encoding")
    if coding is not None:
        if coding.strip().lower() != "chunked":
            raise MalformedHead("its transfer-encoding is not chunked")
        return ChunkedBody()
    length = head.headers.get("content-length")
    if length is None:
        return CloseBody()
    lengths = {one.strip() for one in length.split(",")}
    if len(lengths) != 1 or not length.isascii():
        raise MalformedHead("it gives more than one content-length")
    (digits,) = lengths
    if not digits.isdigit() or len(digits) > 18:
        raise MalformedHead("its content-length is not a number")
    return LengthBody(int(digits))


def _check_start(buffer: bytes) -> None:
    # Refused at once, not after 64 KiB or the read timeout: a TLS or HTTP/2 server, or another protocol altogether.
    if buffer[:5] != b"HTTP/"[: len(buffer)]:
        raise MalformedHead("its first bytes are no status line")
