"""A response's head: status, headers and how its body ends. httptools reads it, as strictly as node.js does."""

from collections.abc import Mapping
from dataclasses import dataclass

import httptools

from opensearch_ml_stream.plugin.upstream.http1.bodies import Body, ChunkedBody, CloseBody, LengthBody

MAX_HEAD_BYTES = 64 * 1024  # node and nginx stop at 16 and 32 KiB
_BLANK_LINE = b"\r\n\r\n"


class MalformedHead(Exception):
    """The bytes are not an HTTP/1.1 head that we can go on with; the text says why in our own words."""


@dataclass(frozen=True, slots=True)
class Head:
    """Header names are in lower case, values of the same name joined by ", "."""

    status: int
    headers: Mapping[str, str]
    keep_alive: bool


class ResponseHeadParser:
    """Collects bytes until a final head is whole; interim answers (1xx) are read over."""

    __slots__ = ("_held", "_seen")

    def __init__(self) -> None:
        self._held = b""
        self._seen = 0

    def feed(self, data: bytes) -> tuple[Head, bytes] | None:
        """The head and the bytes behind it, None while it is not whole. MalformedHead if it never will be."""
        held = self._held + data if self._held else data
        searched = max(0, len(self._held) - 3)
        while True:
            end = held.find(_BLANK_LINE, searched) + 4
            if self._seen + (len(held) if end < 4 else end) > MAX_HEAD_BYTES:
                raise MalformedHead(f"its head is larger than {MAX_HEAD_BYTES} bytes")
            if end < 4:
                _check_start(held)
                self._held = held
                return None
            head = read_head(held[:end])
            if head.status >= 200:
                self._held = b""
                return head, held[end:]
            self._seen += end
            held = held[end:]
            searched = 0


class _Fields:
    """What httptools calls while it reads a head."""

    __slots__ = ("headers",)

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1")
        known = self.headers.get(key)
        self.headers[key] = text if known is None else f"{known}, {text}"


def read_head(raw: bytes) -> Head:
    """The head of `raw`, which ends with its blank line."""
    fields = _Fields()
    parser = httptools.HttpResponseParser(fields)
    try:
        parser.feed_data(raw)
    except httptools.HttpParserUpgrade:
        raise MalformedHead("it changes the protocol, which was not asked for") from None
    except httptools.HttpParserError:
        raise MalformedHead("its head cannot be read") from None
    status = parser.get_status_code()
    if status == 101 or status < 100:
        raise MalformedHead(f"status {status} was not asked for")
    options = {one.strip().lower() for one in fields.headers.get("connection", "").split(",")}
    keep_alive = "close" not in options and (parser.get_http_version() == "1.1" or "keep-alive" in options)
    return Head(status, fields.headers, keep_alive)


def body_of(head: Head) -> Body:
    """How the body of an answer ends. MalformedHead if it says so in no way that we know."""
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
    said = {one.strip() for one in length.split(",")}
    if len(said) != 1 or not length.isascii():
        raise MalformedHead("it gives more than one content-length")
    (digits,) = said
    if not digits.isdigit() or len(digits) > 18:
        raise MalformedHead("its content-length is not a number")
    return LengthBody(int(digits))


def _check_start(held: bytes) -> None:
    # Told at once, not after 64 KiB or the read timeout: a TLS or HTTP/2 server, or another protocol altogether.
    if held[:5] != b"HTTP/"[: len(held)]:
        raise MalformedHead("its first bytes are no status line")
