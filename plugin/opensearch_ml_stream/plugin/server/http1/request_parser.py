"""Requests out of a connection's bytes: httptools (llhttp) parses, and what it would keep without bound is counted."""

from dataclasses import dataclass
from typing import Protocol
from urllib.parse import unquote

import httptools
from starlette.types import Scope

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.plugin.server.http1.limits import MAX_HEAD_BYTES, MAX_HEADERS
from opensearch_ml_stream.plugin.server.http1.refusals import Headers, head_too_large, not_http
from opensearch_ml_stream.rest_handlers.http.relay_extensions import BROKEN, HTTP_TRAILERS, INFORMATIONAL, LONG_REQUEST

_FRAMING = (b"content-length", b"transfer-encoding")
_EXTENSIONS: dict[str, object] = {HTTP_TRAILERS: {}, INFORMATIONAL: {}, BROKEN: {}, LONG_REQUEST: {}}


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The head of a request; `scope` is ASGI's, without what the connection knows."""

    scope: Scope
    keep_alive: bool
    expects_continue: bool


class Receiver(Protocol):
    """What a RequestParser calls; an MLStreamError that it raises comes out of `feed`."""

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
        """Note that a request is whole, with the trailers behind its body."""
        ...


class RequestParser:
    """Parser of the requests on one connection. `in_head` from the first byte of a head to its last."""

    __slots__ = (
        "_expects_continue", "_head_bytes", "_headers", "_is_upgrade", "_muted", "_parser", "_receiver", "_trailers",
        "_unused_bytes", "_url", "in_head",
    )  # fmt: skip

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._muted = False
        self._unused_bytes = 0  # since a head, or a piece of a body, was complete
        self.in_head = False
        self._new_parser()

    def feed(self, data: bytes) -> None:
        """Parse the next bytes; an MLStreamError refuses the request, and nothing may be fed after it."""
        self._unused_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade()
            if rest := data[upgrade.args[0] :]:
                self.feed(rest)
        except httptools.HttpParserError as error:
            raise _as_refusal(error) from None
        if self._unused_bytes > MAX_HEAD_BYTES:  # a head, or extensions of chunks, or trailers, that do not end
            raise head_too_large()

    def close(self) -> None:
        """Let go of the parser and the receiver, which hold this."""
        del self._parser, self._receiver

    # The calls of httptools.

    def on_message_begin(self) -> None:
        """Begin a head."""
        if self._muted:
            return
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._trailers: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        self._expects_continue = self._is_upgrade = False
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
        if name == b"expect" and value.lower() == b"100-continue":
            self._expects_continue = True
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Check the head and hand it over."""
        if self._muted:
            return
        self.in_head = False
        self._unused_bytes = 0
        parser = self._parser
        version = parser.get_http_version()
        _check_framing(version, self._headers)
        is_current = version == "1.1"
        scope = self._scope(version, parser.get_method())
        self._is_upgrade = parser.should_upgrade()
        keep_alive = is_current and parser.should_keep_alive()
        self._receiver.take_head(RequestHead(scope, keep_alive, self._expects_continue and is_current))

    def on_body(self, body: bytes) -> None:
        """Hand over a piece of the body."""
        self._unused_bytes = 0
        self._receiver.take_body(body)

    def on_message_complete(self) -> None:
        """End the request, unless the parser takes its body for another protocol."""
        if not (self._muted or self._is_upgrade):
            self._receiver.end_request(self._trailers)

    def _new_parser(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        # What is pipelined behind `Connection: close` is no error: the request before it gets its response.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)

    def _ignore_upgrade(self) -> None:
        """Go on in HTTP/1.1 behind a head with `Upgrade`, as a server may (RFC 9110, section 7.8).

        Java's client asks for `h2c` in its first request. llhttp takes what follows for the other protocol, so a new
        parser is told, by a head that nobody else sees, of the body that is due.
        """
        self._is_upgrade = False
        self._new_parser()
        framing = [b"%b: %b\r\n" % pair for pair in self._headers if pair[0] in _FRAMING]
        if not framing:
            self._receiver.end_request(())
            return
        self._muted = True
        self._parser.feed_data(b"".join([b"POST / HTTP/1.1\r\n", *framing, b"\r\n"]))
        self._muted = False

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MAX_HEAD_BYTES or len(self._headers) + len(self._trailers) >= MAX_HEADERS:
            raise head_too_large()

    def _scope(self, version: str, method: bytes) -> Scope:
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
            "state": {},
            "method": method.decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "raw_path": raw_path,
            "query_string": url.query or b"",
            "extensions": dict(_EXTENSIONS),
        }


def _check_framing(version: str, headers: list[tuple[bytes, bytes]]) -> None:
    """Raise InvalidRequest for a head that servers read in different ways (RFC 9112, sections 2.3, 3.2 and 6.1)."""
    if version not in ("1.0", "1.1"):
        raise not_http(f"HTTP/{version} is not supported; use HTTP/1.1")
    names = [name for name, _ in headers]
    hosts = names.count(b"host")
    if hosts > 1 or (hosts == 0 and version == "1.1"):
        raise not_http("it has no header Host, or several")
    if sum(names.count(name) for name in _FRAMING) > 1:
        raise not_http("it has several of Content-Length and Transfer-Encoding")


def _as_refusal(error: httptools.HttpParserError) -> MLStreamError:
    """Return the refusal for an error of the parser, or for one that left a method above."""
    if not isinstance(error, httptools.HttpParserCallbackError):
        return not_http(str(error))
    cause = error.__context__
    if isinstance(cause, MLStreamError):
        return cause
    if isinstance(cause, httptools.HttpParserInvalidURLError | UnicodeDecodeError):
        return not_http("its URL cannot be read")
    raise error
