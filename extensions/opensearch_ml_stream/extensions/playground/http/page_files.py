"""The page of the playground and the files that it loads: files of this package, no other."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

from opensearch_ml_stream.rest_handlers.http.pages import HTML, PageTemplate, page_response

_PACKAGE = "opensearch_ml_stream.extensions.playground.http"
_MAY_LOAD = (
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",  # the images that a user attaches
    "connect-src 'self'",
    "require-trusted-types-for 'script'",  # no string becomes HTML in any script of the page but in the sanitizer
    "trusted-types dompurify",
)
_FOLDERS = ("static", "vendored")
_CONTENT_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file in memory. `etag` is the entity tag of its content (RFC 9110, section 8.8.3)."""

    content: bytes
    content_type: str
    etag: str

    @classmethod
    def of(cls, content: bytes, content_type: str) -> "PageFile":
        """Return the file with its entity tag."""
        return cls(content, content_type, f'"{sha256(content).hexdigest()[:32]}"')

    def respond(self, request: Request) -> Response:
        """Return the file, or 304 if the browser has this content; browsers revalidate each time."""
        is_known = self.etag in _entity_tags(request.headers.get("if-none-match", ""))
        response = page_response(request.scope, b"" if is_known else self.content, _MAY_LOAD, self.content_type)
        if is_known:
            response.status_code = 304
            del response.headers["content-length"], response.headers["content-type"]
        response.headers["ETag"] = self.etag
        response.headers["Cache-Control"] = "no-cache"
        return response


async def read_page(version: str, *, asks_for_login: bool, converses: bool) -> PageFile:
    """Return the page of this version of the sidecar.

    `asks_for_login` shapes the code samples; without `converses` the page cannot talk to models.
    """
    template = PageTemplate(_PACKAGE, "templates/playground.html")
    page = await template.render(version=version, asks_for_login=asks_for_login, converses=converses)
    return PageFile.of(page.encode(), HTML)


def read_static_files() -> Mapping[str, PageFile]:
    """Return the files below `/_ui/static/` by name: our own, and those of others, as their packages have them."""
    folders = (resources.files(_PACKAGE).joinpath(name) for name in _FOLDERS)
    files = (file for folder in folders for file in folder.iterdir())
    return {file.name: _read(file) for file in files if _suffix(file) in _CONTENT_TYPES}


def _read(file: Traversable) -> PageFile:
    return PageFile.of(file.read_bytes(), _CONTENT_TYPES[_suffix(file)])


def _suffix(file: Traversable) -> str:
    return file.name[file.name.rfind(".") :]


def _entity_tags(header: str) -> set[str]:
    """Return the tags of `If-None-Match`, weak ones as strong ones: they compare equal there."""
    return {tag.strip().removeprefix("W/") for tag in header.split(",")}
