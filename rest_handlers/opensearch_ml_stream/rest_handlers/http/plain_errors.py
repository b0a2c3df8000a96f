"""Mark requests whose errors are plain: `{"error": "<reason>"}`, as model servers have them."""

from starlette.types import ASGIApp, Receive, Scope, Send

from opensearch_ml_stream.rest_handlers.base_path import Paths
from opensearch_ml_stream.rest_handlers.http.responses import PLAIN_ERRORS


def marking_plain_errors(application: ASGIApp, paths: Paths) -> ASGIApp:
    """Return the application behind one that marks the requests to plain paths."""

    async def mark(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and paths.has_plain_errors(scope["path"]):
            scope[PLAIN_ERRORS] = True
        await application(scope, receive, send)

    return mark if paths.plain else application
