"""Health, metrics, and the name and version of the sidecar: routes for operators, outside the base path."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from opensearch_ml_stream.connectors.errors import MLStreamError, Unavailable
from opensearch_ml_stream.rest_handlers.http.browsers import with_security_headers
from opensearch_ml_stream.rest_handlers.http.responses import error_response, json_response

READY_SECONDS = 1.5  # of waiting for the store: whoever asks whether a server is ready waits 2 s or so
METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def operation_routes(ping: Callable[[], Awaitable[None]], metrics: Callable[[], bytes], version: str) -> list[Route]:
    """Return the routes of `/`, `/_health/live`, `/_health/ready` and `/metrics`.

    `ping` raises Unavailable while the store does not respond; `metrics` returns Prometheus' text format.
    """

    async def live(request: Request) -> Response:
        """Whether the process is alive."""
        return json_response(request, {"status": "live"})

    async def ready(request: Request) -> Response:
        """Whether the store responds."""
        try:
            async with asyncio.timeout(READY_SECONDS):
                await ping()
        except TimeoutError:
            return error_response(request, Unavailable(f"The store did not respond within {READY_SECONDS} s"))
        except MLStreamError as error:
            return error_response(request, error)
        return json_response(request, {"status": "ready"})

    async def show_metrics(request: Request) -> Response:
        """Return the metrics as Prometheus' text."""
        return with_security_headers(request.scope, Response(metrics(), media_type=METRICS_CONTENT_TYPE))

    async def root(request: Request) -> Response:
        """Return the name and the version."""
        return json_response(request, {"name": "opensearch-ml-stream", "version": version})

    return [
        Route("/", root),
        Route("/_health/live", live),
        Route("/_health/ready", ready),
        Route("/metrics", show_metrics),
    ]
