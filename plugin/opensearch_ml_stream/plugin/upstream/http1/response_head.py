"""Parses response heads: status, headers and how the body ends. httptools does it, as strictly as node.js."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import httptools

from opensearch_ml_stream.plugin.upstream.http1.bodies import Body, ChunkedBody, CloseBody, LengthBody

MAX_HEAD_BYTES = 64 * 1024  # interim responses included; node and nginx stop at 16 and 32 KiB
_BLANK_LINE = b"\r\n\r\n"
_FIELDS = re.compile(r"([^:\r\n]+):[ \t]*([^\r\n]*)").findall
_NO_CALLBACKS = object()  # llhttp checks a head; its fields are split here, which costs less than a call for each


class MalformedHead(Exception):
    """The bytes are not the head of an HTTP/1.1 response to our request; the message holds none of them."""


class Head(NamedTuple):
    """A response head. Header names are in lower case, in `headers` values of the same name joined by ", ".

    `fields` are the headers as they came, one by one and in their order.
    """

    status: int
    headers: Mapping[str, str]
    keep_alive: bool
    fields: list[tuple[str, str]]


class ResponseHeadParser:
    """Collects bytes until the head of the final response is complete; `on_interim` gets those before it (1xx)."""

    __slots__ = ("_buffer", "_limit", "_on_interim")

    def __init__(self, on_interim: Callable[[Head], None] | None = None) -> None:
        self._buffer = b""
        self._limit = MAX_HEAD_BYTES
        self._on_interim = on_interim

    def feed(self, data: bytes) -> tuple[Head, bytes] | None:
        """Return the head and the bytes after it, None while it is incomplete.

        MalformedHead if it is not HTTP/1.1, is too large, or does not begin as HTTP does.
        """
        while (complete := self._take(data)) is not None:
            raw, data = complete
            head = parse_head(raw)
            if head.status >= 200:
                return head, data
            self._limit -= len(raw)
            if self._on_interim is not None:
                self._on_interim(head)
        return None

    def _take(self, data: bytes) -> tuple[bytes, bytes] | None:
        buffer = self._buffer + data if self._buffer else data
        end = buffer.find(_BLANK_LINE, max(0, len(self._buffer) - 3)) + 4
        if (len(buffer) if end < 4 else end) > self._limit:
            raise MalformedHead(f"its head is larger than {MAX_HEAD_BYTES} bytes")
        if end < 4:
            _check_start(buffer)
            self._buffer = buffer
            return None
        self._buffer = b""
        return buffer[:end], buffer[end:]


def parse_head(raw: bytes) -> Head:
    """Parse a head that is complete up to its blank line. MalformedHead if it is not HTTP/1.1, or status 101."""
    parser = httptools.HttpResponseParser(_NO_CALLBACKS)
    try:
        parser.feed_data(raw)
    except httptools.HttpParserUpgrade:
        raise MalformedHead("it changes the protocol, which was not asked for") from None
    except httptools.HttpParserError:
        raise MalformedHead("its head cannot be read") from None
    status = parser.get_status_code()
    if status == 101 or status < 100:
        raise MalformedHead(f"status {status} was not asked for")
    fields = _header_fields(raw)
    headers = dict(fields)
    if len(headers) < len(fields):
        headers = _joined(fields)
    return Head(status, headers, _keeps_alive(headers.get("connection", ""), parser), fields)


def body_of(head: Head, method: str = "GET") -> Body:
    """Return a Body for the way in which the response to that method ends. MalformedHead if it is unclear."""
    if head.status in (204, 304) or method == "HEAD" or (method == "CONNECT" and head.status < 300):
        return LengthBody(0)
    coding = head.headers.get("transfer-encoding")
    if coding is not None:
        if coding.strip().lower() != "chunked":
            raise MalformedHead("its transfer-encoding is not chunked")
        return ChunkedBody()
    length = head.headers.get("content-length")
    return CloseBody() if length is None else LengthBody(_read_length(length))


def _header_fields(raw: bytes) -> list[tuple[str, str]]:
    # llhttp lets no line pass but `name: value` behind the status line
    text = raw.decode("latin-1").lstrip("\r\n")
    return [(name.lower(), value) for name, value in _FIELDS(text, text.index("\n") + 1)]


def _joined(fields: list[tuple[str, str]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in fields:
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _keeps_alive(connection: str, parser: httptools.HttpResponseParser) -> bool:
    """Return whether the connection stays open; `connection` are the values of that header field."""
    if connection == "keep-alive":
        return True
    if not connection:
        return parser.get_http_version() == "1.1"
    options = {option.strip().lower() for option in connection.split(",")}
    return "close" not in options and ("keep-alive" in options or parser.get_http_version() == "1.1")


def _read_length(value: str) -> int:
    digits = value
    if not value.isdigit():  # repeated, it may be given again and again
        lengths = {one.strip() for one in value.split(",")}
        if len(lengths) != 1:
            raise MalformedHead("it gives more than one content-length")
        (digits,) = lengths
    if not value.isascii():
        raise MalformedHead("it gives more than one content-length")
    if not digits.isdigit() or len(digits) > 18:
        raise MalformedHead("its content-length is not a number")
    return int(digits)


def _check_start(buffer: bytes) -> None:
    # Refused at once, not after 64 KiB or the read timeout: a TLS or HTTP/2 server, or another protocol altogether.
    if buffer[:5] != b"HTTP/"[: len(buffer)]:
        raise MalformedHead("its first bytes are no status line")
