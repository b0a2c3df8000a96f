"""Mark requests whose errors are plain: `{"error": "<reason>"}`, as model servers have them."""

from starlette.types import ASGIApp, Receive, Scope, Send

from opensearch_ml_stream.rest_handlers.base_path import Paths
from opensearch_ml_stream.rest_handlers.http.responses import PLAIN_ERRORS


class PlainErrors:
    """An ASGI application before a router, which marks the requests to plain paths."""

    def __init__(self, router: ASGIApp, paths: Paths) -> None:
        self._router = router
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand every request on, those to plain paths with PLAIN_ERRORS in their scope."""
        if scope["type"] == "http" and self._paths.has_plain_errors(scope["path"]):
            scope[PLAIN_ERRORS] = True
        await self._router(scope, receive, send)
