"""Lines of response heads, made once where they are the same for many responses."""

from starlette.types import Scope

from opensearch_ml_stream.rest_handlers.http.direct_exchange import HEAD_MEMO
from opensearch_ml_stream.rest_handlers.http.host_and_origin import (
    FOR_OWN_PAGES,
    SECURITY_HEADERS,
    Headers,
    security_headers,
)
from opensearch_ml_stream.rest_handlers.http.request_notes import RequestNotes

_STREAM_HEADERS: Headers = ((b"cache-control", b"no-cache, no-transform"), (b"x-accel-buffering", b"no"))
_OPAQUE_ID = "opaque_id_line"  # of the memo of a head


def _lines(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])


_STREAM_LINES = _lines(_STREAM_HEADERS)
_LINES_FOR_OWN_PAGES = _lines(FOR_OWN_PAGES)


def stream_lines(scope: Scope, content_type: str) -> bytes:
    """Return the lines of a stream's head but `request_id_line`: the same for requests with equal heads."""
    return b"content-type: %b\r\n%b%b%b" % (
        content_type.encode(),
        _STREAM_LINES,
        _security_lines(scope),
        _opaque_id_line(scope),
    )


def stream_headers(
    scope: Scope, content_type: str, further: Headers, notes: RequestNotes | None
) -> list[tuple[bytes, bytes]]:
    """Return the same as headers, with further ones among them."""
    headers = [(b"content-type", content_type.encode()), *_STREAM_HEADERS, *further, *security_headers(scope)]
    headers += [pair for pair in scope["headers"] if pair[0] == b"x-opaque-id"][:1]
    if notes is not None:
        headers.append((b"x-request-id", notes.id.encode()))
    return headers


def json_lines(scope: Scope, length: int, notes: RequestNotes | None) -> bytes:
    """Return the lines of the head of a body that is JSON."""
    return (
        b"cache-control: no-store\r\n%b%bcontent-length: %d\r\ncontent-type: application/json; charset=UTF-8\r\n%b"
        % (
            _opaque_id_line(scope),
            _request_id_line(notes),
            length,
            _security_lines(scope),
        )
    )


def _opaque_id_line(scope: Scope) -> bytes:
    """Return the request's `X-Opaque-Id`, the first if there are several; the server has checked what is in it."""
    memo = scope.get(HEAD_MEMO, {})
    known: bytes | None = memo.get(_OPAQUE_ID)
    if known is not None:
        return known
    values = [value for name, value in scope["headers"] if name == b"x-opaque-id"]
    line = b"x-opaque-id: %b\r\n" % values[0] if values else b""
    memo[_OPAQUE_ID] = line
    return line


def _request_id_line(notes: RequestNotes | None) -> bytes:
    return b"" if notes is None else b"x-request-id: %b\r\n" % notes.id.encode()


def _security_lines(scope: Scope) -> bytes:
    headers: Headers | None = scope.get(SECURITY_HEADERS)
    return _LINES_FOR_OWN_PAGES if headers is None else _lines(headers)
