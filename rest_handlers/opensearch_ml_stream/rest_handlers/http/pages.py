"""Pages, and the files that they load, under a Content-Security-Policy that names all that they may load."""

from collections.abc import Sequence

from starlette.responses import Response
from starlette.types import Scope

from opensearch_ml_stream.rest_handlers.http.browsers import security_headers

HTML = "text/html; charset=utf-8"
_POLICY = b"content-security-policy"
_CLOSED = ("default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'")


def page_response(
    scope: Scope, content: str | bytes, directives: Sequence[str] = (), content_type: str = HTML
) -> Response:
    """Return a page, or a file of one, that may load nothing but what the directives allow: `script-src 'self'`."""
    response = Response(content, headers={"Cache-Control": "no-store"}, media_type=content_type)
    policy = (_POLICY, "; ".join((*_CLOSED, *directives)).encode())
    response.raw_headers.extend(policy if header[0] == _POLICY else header for header in security_headers(scope))
    return response
