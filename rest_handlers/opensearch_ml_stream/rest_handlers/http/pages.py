"""Pages, and the files that they load, under a Content-Security-Policy that names all that they may load."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module, resources
from typing import Any

from starlette.responses import Response
from starlette.types import Scope

from opensearch_ml_stream.rest_handlers.http.host_and_origin import security_headers

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


@dataclass(slots=True)
class PageTemplate:
    """A template of HTML, a file of a package.

    It is read, and jinja2 loaded, when a page is first asked for: 4 MiB that a server without visitors does not need.
    That is done in a thread, since it takes 30 ms, during which streams go on.
    """

    package: str
    path: str
    _template: Any = field(default=None, init=False)

    async def render(self, **values: object) -> str:
        """Return the page with these values; an error if the template names another."""
        if self._template is None:
            self._template = await asyncio.to_thread(self._load)
        page: str = self._template.render(values)
        return page

    def _load(self) -> Any:
        jinja2 = import_module("jinja2")
        source = resources.files(self.package).joinpath(self.path).read_text("utf-8")
        rules = {"autoescape": True, "undefined": jinja2.StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
        return jinja2.Environment(**rules).from_string(source)
