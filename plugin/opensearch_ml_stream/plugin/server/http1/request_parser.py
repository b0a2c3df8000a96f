"""Parse requests from a connection's bytes, with httptools (llhttp) and limits on what that would keep."""

from typing import Any, Protocol
from urllib.parse import unquote

import httptools

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.plugin.server.http1.head_cache import HeadCache, RequestHead
from opensearch_ml_stream.plugin.server.http1.limits import MAX_HEAD_BYTES, MAX_HEADERS
from opensearch_ml_stream.plugin.server.http1.refusals import Headers, head_too_large, not_http
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import HEAD_MEMO
from opensearch_ml_stream.rest_handlers.http.requests import plain_id

_FRAMING = (b"content-length", b"transfer-encoding")
_CHECKED = frozenset({*_FRAMING, b"host", b"expect", b"x-request-id"})


class Receiver(Protocol):
    """What a RequestParser calls; `feed` raises an MLStreamError that a method raises."""

    def begin_request(self) -> None:
        """Note the first byte of a request."""
        ...

    def take_head(self, head: RequestHead) -> None:
        """Take the head of a request."""
        ...

    def take_body(self, body: bytes) -> None:
        """Take the next piece of a request's body."""
        ...

    def end_request(self, trailers: Headers) -> None:
        """Note that a request is complete; `trailers` came after its body."""
        ...


class RequestParser:
    """Parses the requests on one connection.

    `in_head` while a head is being received, `is_between` while no request is.
    """

    __slots__ = (
        "_expects_continue", "_foreign_id", "_framings", "_head", "_head_bytes", "_headers", "_heads", "_hosts",
        "_is_upgrade", "_is_whole", "_muted", "_parser", "_receiver", "_trailers", "_unused_bytes", "_url", "in_head",
        "is_between",
    )  # fmt: skip

    def __init__(self, receiver: Receiver, heads: HeadCache) -> None:
        self._receiver = receiver
        self._heads = heads
        self._head: RequestHead | None = None  # of what seems to be a whole request
        self.is_between = True  # two requests
        self._is_whole = False
        self._muted = False
        self._unused_bytes = 0  # since the end of a head or of a piece of a body
        self.in_head = False
        self._parser: httptools.HttpRequestParser | None = None  # takes a kilobyte, so only while needed

    def feed(self, data: bytes, key: bytes | None = None) -> None:
        """Parse the next bytes. An MLStreamError refuses the request; nothing may be fed after it.

        With a `key`, the bytes seem to be one whole request, whose head is cached under it.
        """
        if key is None:
            self._parse(data)
            return
        self._is_whole = True
        self._parse(data)
        self._is_whole = False
        if self.is_between and self._head is not None:  # these bytes were one request
            self._heads.remember(key, self._head)
            self._parser = None  # the next head will probably be cached
        self._head = None

    def _parse(self, data: bytes) -> None:
        self._unused_bytes += len(data)
        parser = self._parser or self._new_parser()
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade()
            if rest := data[upgrade.args[0] :]:
                self._parse(rest)
        except httptools.HttpParserError as error:
            raise _as_refusal(error) from None
        if self._unused_bytes > MAX_HEAD_BYTES:  # a head, chunk extensions or trailers that do not end
            raise head_too_large()

    def close(self) -> None:
        """Drop the parser and the receiver, which refer to this."""
        del self._parser, self._receiver

    # Called by httptools.

    def on_message_begin(self) -> None:
        """Begin a head."""
        if self._muted:
            return
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._trailers: list[tuple[bytes, bytes]] = []
        self._head_bytes = self._hosts = self._framings = 0
        self._foreign_id = ""
        self._expects_continue = self._is_upgrade = self.is_between = False
        self.in_head = True
        self._receiver.begin_request()

    def on_url(self, url: bytes) -> None:
        """Take a part of the request's target."""
        if not self._muted:
            self._url += url
            self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or a trailer."""
        if self._muted:
            return
        self._count(len(name) + len(value) + 4)
        name = name.lower()
        if not self.in_head:
            self._trailers.append((name, value))
            return
        if name in _CHECKED:
            self._note(name, value)
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Check the head and pass it on."""
        if self._muted:
            return
        self.in_head = False
        self._unused_bytes = 0
        parser = self._parser
        assert parser is not None
        version = parser.get_http_version()
        self._check_framing(version)
        is_current = version == "1.1"
        scope = self._scope(version, parser.get_method())
        self._is_upgrade = parser.should_upgrade()
        keep_alive = is_current and parser.should_keep_alive()
        head = RequestHead(scope, keep_alive, self._expects_continue and is_current, self._foreign_id)
        if self._is_whole and keep_alive and not (head.expects_continue or self._is_upgrade):
            self._head = head
        self._receiver.take_head(head)

    def on_body(self, body: bytes) -> None:
        """Pass on a piece of the body."""
        self._unused_bytes = 0
        self._receiver.take_body(body)

    def on_message_complete(self) -> None:
        """End the request, unless llhttp takes its body for another protocol."""
        if not self._is_upgrade:
            self.is_between = True
            self._receiver.end_request(self._trailers)

    def _new_parser(self) -> httptools.HttpRequestParser:
        parser = self._parser = httptools.HttpRequestParser(self)
        # Bytes after a request with `Connection: close` are no error: that request gets its response.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    def _ignore_upgrade(self) -> None:
        """Continue with HTTP/1.1 after a head with `Upgrade`, as a server may (RFC 9110, section 7.8).

        Java's client asks for `h2c` in its first request. llhttp takes what follows for the other protocol, so a new
        parser is fed a head with the framing of this request, to parse its body.
        """
        self._is_upgrade = False
        parser = self._new_parser()
        framing = [b"%b: %b\r\n" % pair for pair in self._headers if pair[0] in _FRAMING]
        if not framing:
            self.is_between = True
            self._receiver.end_request(())
            return
        self._muted = True
        try:
            parser.feed_data(b"".join([b"POST / HTTP/1.1\r\n", *framing, b"\r\n"]))
        except httptools.HttpParserError as error:
            raise _as_refusal(error) from None
        self._muted = False

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MAX_HEAD_BYTES or len(self._headers) + len(self._trailers) >= MAX_HEADERS:
            raise head_too_large()

    def _note(self, name: bytes, value: bytes) -> None:
        """Evaluate a header that affects how the request is read, or has its id."""
        if name == b"host":
            self._hosts += 1
        elif name in _FRAMING:
            self._framings += 1
        elif name == b"expect":
            self._expects_continue = self._expects_continue or value.lower() == b"100-continue"
        elif not self._foreign_id:
            self._foreign_id = plain_id(value)

    def _check_framing(self, version: str) -> None:
        """Raise InvalidRequest for a head that servers may read differently (RFC 9112, sections 2.3, 3.2 and 6.1)."""
        if version not in ("1.0", "1.1"):
            raise not_http(f"HTTP/{version} is not supported; use HTTP/1.1")
        if self._hosts > 1 or (self._hosts == 0 and version == "1.1"):
            raise not_http("it has no header Host, or several")
        if self._framings > 1:
            raise not_http("it has several of Content-Length and Transfer-Encoding")

    def _scope(self, version: str, method: bytes) -> dict[str, Any]:
        url = httptools.parse_url(self._url)
        raw_path = url.path or b"/"
        path = raw_path.decode("ascii")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": version,
            "scheme": "http",
            "root_path": "",
            "headers": self._headers,
            "method": method.decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "raw_path": raw_path,
            "query_string": url.query or b"",
            HEAD_MEMO: {},
        }


def _as_refusal(error: httptools.HttpParserError) -> MLStreamError:
    """Return the error to refuse a request with, for an error of llhttp or of a method above."""
    if not isinstance(error, httptools.HttpParserCallbackError):
        return not_http(str(error))
    cause = error.__context__
    if isinstance(cause, MLStreamError):
        return cause
    if isinstance(cause, httptools.HttpParserInvalidURLError | UnicodeDecodeError):
        return not_http("its URL cannot be read")
    raise error
