"""Parses response heads: status, headers and how the body ends. httptools does it, as strictly as node.js."""

from collections.abc import Mapping
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


class ResponseHeadParser:
    """Collects bytes until the head of the final response is complete; interim responses (1xx) are skipped."""

    __slots__ = ("_buffer", "_skipped_bytes")

    def __init__(self) -> None:
        self._buffer = b""
        self._skipped_bytes = 0

    def feed(self, data: bytes) -> tuple[Head, bytes] | None:
        """Return the head and the bytes after it, None while it is incomplete. MalformedHead if it is not HTTP/1.1."""
        buffer = self._buffer + data if self._buffer else data
        search_from = max(0, len(self._buffer) - 3)
        while True:
            end = buffer.find(_BLANK_LINE, search_from) + 4
            if self._skipped_bytes + (len(buffer) if end < 4 else end) > MAX_HEAD_BYTES:
                raise MalformedHead(f"its head is larger than {MAX_HEAD_BYTES} bytes")
            if end < 4:
                _check_start(buffer)
                self._buffer = buffer
                return None
            head = read_head(buffer[:end])
            if head.status >= 200:
                self._buffer = b""
                return head, buffer[end:]
            self._skipped_bytes += end
            buffer = buffer[end:]
            search_from = 0


class _HeaderCallbacks:
    """Callbacks of httptools."""

    __slots__ = ("headers",)

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1")
        earlier = self.headers.get(key)
        self.headers[key] = text if earlier is None else f"{earlier}, {text}"


def read_head(raw: bytes) -> Head:
    """Parse a head that is complete up to its blank line. MalformedHead if it is not HTTP/1.1, or status 101."""
    callbacks = _HeaderCallbacks()
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
    options = {option.strip().lower() for option in callbacks.headers.get("connection", "").split(",")}
    keep_alive = "close" not in options and (parser.get_http_version() == "1.1" or "keep-alive" in options)
    return Head(status, callbacks.headers, keep_alive)


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
