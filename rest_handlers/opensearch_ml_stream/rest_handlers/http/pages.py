"""HTML pages, under a Content-Security-Policy that names all that they may load."""

from collections.abc import Sequence

from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from opensearch_ml_stream.rest_handlers.http.browsers import security_headers

_POLICY = b"content-security-policy"
_CLOSED = ("default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'")


def html_page(scope: Scope, html: str, directives: Sequence[str] = ()) -> Response:
    """Return a page that may load nothing but what the directives allow, such as `script-src 'self'`."""
    response = HTMLResponse(html, headers={"Cache-Control": "no-store"})
    policy = (_POLICY, "; ".join((*_CLOSED, *directives)).encode())
    response.raw_headers.extend(policy if header[0] == _POLICY else header for header in security_headers(scope))
    return response
