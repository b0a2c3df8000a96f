"""Health, metrics, and the name and version of the sidecar: routes for operators, outside the base path."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.rest_handlers.http.responses import error_response, json_response

METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def operation_routes(ping: Callable[[], Awaitable[None]], metrics: Callable[[], bytes], version: str) -> list[Route]:
    """Return the routes of `/`, `/_health/live`, `/_health/ready` and `/metrics`.

    `ping` raises Unavailable while the store does not respond; `metrics` returns Prometheus' text format.
    """

    async def live(request: Request) -> Response:
        return json_response(request, {"status": "live"})

    async def ready(request: Request) -> Response:
        try:
            await ping()
        except MLStreamError as error:
            return error_response(request, error)
        return json_response(request, {"status": "ready"})

    async def show_metrics(request: Request) -> Response:
        return Response(metrics(), media_type=METRICS_CONTENT_TYPE)

    async def root(request: Request) -> Response:
        return json_response(request, {"name": "opensearch-ml-stream", "version": version})

    return [
        Route("/", root),
        Route("/_health/live", live),
        Route("/_health/ready", ready),
        Route("/metrics", show_metrics),
    ]
