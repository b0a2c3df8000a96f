"""A page that calls `/generate-stream` by fetch and by EventSource; it loads only files of this package."""

from collections.abc import Callable
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from opensearch_ml_stream.connectors.errors import NotFound
from opensearch_ml_stream.extensions.generate_stream.extension import GENERATE_STREAM_PATH
from opensearch_ml_stream.extensions.generate_stream.generate_endpoint import model_named_by
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.pages import HTML, page_response

# Path below /generate-stream -> file and content type.
_FILES = {
    "demo": ("demo.html", HTML),
    "demo.css": ("demo.css", "text/css; charset=utf-8"),
    "demo.js": ("demo.js", "text/javascript; charset=utf-8"),
}
_MAY_LOAD = ("script-src 'self'", "style-src 'self'", "img-src data:", "connect-src 'self'")


def demo_page_route(model_name: Callable[[], str], gate: Gate) -> Route:
    """Return the route of the page's files, for those who may call `/generate-stream`.

    A browser asks its user for a name and a password here, and sends them with what the page asks for.
    """
    folder = resources.files("opensearch_ml_stream.extensions.generate_stream").joinpath("demo")
    contents = {path: (folder.joinpath(name).read_bytes(), kind) for path, (name, kind) in _FILES.items()}

    async def show(request: Request) -> Response:
        """Show a page that asks /generate-stream."""
        await gate.admit(request.scope, actions.PREDICT_STREAM, actions.PREDICT)
        model_named_by(model_name)
        found = contents.get(request.path_params["file"])
        if found is None:
            raise NotFound(f"There is no such file; the page is {GENERATE_STREAM_PATH}/demo")
        content, content_type = found
        return page_response(request.scope, content, _MAY_LOAD, content_type)

    return Route(GENERATE_STREAM_PATH + "/{file}", show)
