"""Which headers of a message are forwarded: all but those of the connection (RFC 9110, section 7.6.1)."""

from collections.abc import Iterable

from opensearch_ml_stream.plugin.store import IMPERSONATION

Headers = list[tuple[bytes, bytes]]

_OF_CONNECTION = frozenset({
    b"connection", b"http2-settings", b"keep-alive", b"proxy-authenticate", b"proxy-authentication-info",
    b"proxy-authorization", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade",
})  # fmt: skip
# RFC 9110, section 6.5.1: what frames a message, routes it, says who sends it or how to read it, is no trailer.
_NO_TRAILERS = _OF_CONNECTION | {
    b"authorization", b"cache-control", b"content-encoding", b"content-length", b"content-range", b"content-type",
    b"cookie", b"expect", b"forwarded", b"host", b"max-forwards", IMPERSONATION.encode(), b"range",
    b"set-cookie", b"www-authenticate", b"x-api-key",
}  # fmt: skip
_NEVER_NAMED = frozenset({b"content-length", b"host"})  # `Connection: content-length` would take a body's frame away


def end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the headers that are not of the connection itself, nor named by `Connection`. Names are in lower case."""
    pairs = list(headers)
    dropped = _OF_CONNECTION
    if options := [value for name, value in pairs if name == b"connection"]:
        dropped |= {option.strip().lower() for option in b",".join(options).split(b",")} - _NEVER_NAMED
    return [pair for pair in pairs if pair[0] not in dropped]


def trailer_fields(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return those of a message's trailers that a recipient may trust to be trailers."""
    return [pair for pair in headers if pair[0] not in _NO_TRAILERS]


def head_lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return headers as lines of HTTP/1.1. They come from a parser, so no name or value holds a line break."""
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])
