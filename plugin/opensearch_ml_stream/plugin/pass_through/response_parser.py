"""Parses the cluster's response heads, informational ones too, with every header as it came."""

from dataclasses import dataclass

import httptools

from opensearch_ml_stream.plugin.pass_through.hop_by_hop import Headers
from opensearch_ml_stream.plugin.upstream.http1.bodies import Body, LengthBody
from opensearch_ml_stream.plugin.upstream.http1.response_head import MAX_HEAD_BYTES, Head, MalformedHead, body_of

_BLANK_LINE = b"\r\n\r\n"
_FRAMING = ("connection", "content-length", "transfer-encoding")


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The head of a response; `keep_alive` unless the host closes the connection behind it. Names are in lower case."""

    status: int
    headers: Headers
    framing: Head

    @property
    def is_final(self) -> bool:
        """Whether no other head follows."""
        return self.status >= 200

    @property
    def is_chunked(self) -> bool:
        """Whether the body comes in chunks, and may have trailers behind it."""
        return "transfer-encoding" in self.framing.headers

    def body(self, method: str) -> Body:
        """Return the body to be received for a request of that method. MalformedHead if its end is unclear."""
        return LengthBody(0) if method == "HEAD" else body_of(self.framing)


class HeadParser:
    """Collects bytes until a head is complete."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> tuple[ResponseHead, bytes] | None:
        """Return the head and the bytes after it, None while it is incomplete. MalformedHead if it is not HTTP/1.1."""
        buffer = self._buffer + data if self._buffer else data
        end = buffer.find(_BLANK_LINE, max(0, len(self._buffer) - 3)) + 4
        if (len(buffer) if end < 4 else end) > MAX_HEAD_BYTES:
            raise MalformedHead(f"its head is larger than {MAX_HEAD_BYTES} bytes")
        if end < 4:
            if buffer[:5] != b"HTTP/"[: len(buffer)]:
                raise MalformedHead("its first bytes are no status line")
            self._buffer = buffer
            return None
        self._buffer = b""
        return _read_head(buffer[:end]), buffer[end:]


class _PairCallbacks:
    """Callbacks of httptools."""

    __slots__ = ("headers",)

    def __init__(self) -> None:
        self.headers: Headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))


def _read_head(raw: bytes) -> ResponseHead:
    callbacks = _PairCallbacks()
    parser = httptools.HttpResponseParser(callbacks)
    try:
        parser.feed_data(raw)
    except httptools.HttpParserUpgrade:
        raise MalformedHead("it changes the protocol, which was not asked for") from None
    except httptools.HttpParserError:
        raise MalformedHead("its head cannot be read") from None
    status = parser.get_status_code()
    if status == 101 or not 100 <= status < 600:
        raise MalformedHead(f"status {status} was not asked for")
    framing: dict[str, str] = {}
    for name, value in callbacks.headers:
        key = name.decode("latin-1")
        if key in _FRAMING:
            text = value.decode("latin-1")
            framing[key] = f"{framing[key]}, {text}" if key in framing else text
    options = {option.strip().lower() for option in framing.get("connection", "").split(",")}
    keep_alive = "close" not in options and (parser.get_http_version() == "1.1" or "keep-alive" in options)
    return ResponseHead(status, callbacks.headers, Head(status, framing, keep_alive))
