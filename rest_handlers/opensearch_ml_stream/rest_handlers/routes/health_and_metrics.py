"""Routes for operators, outside the base path: health, metrics, and `GET /`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from opensearch_ml_stream.connectors.errors import MLStreamError, Unavailable
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.base_path import METRICS_PATH
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.host_and_origin import with_security_headers
from opensearch_ml_stream.rest_handlers.http.responses import error_response, json_response

READY_SECONDS = 1.5  # of waiting for the store: whoever asks whether a server is ready waits 2 s or so
_VARY = {"Vary": "Accept", "Cache-Control": "no-store"}
METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
NAME = "opensearch-ml-stream"
# As OpenSearch's `GET /` has it, for the clients that choose by `number` what they send: the version whose ML Commons'
# API this is. opensearch-java and -go refuse a response without any one of these.
_API_VERSION = {
    "distribution": "opensearch",
    "number": "3.6.0",
    "build_type": NAME,
    "build_hash": "unknown",
    "build_date": "unknown",
    "build_snapshot": False,
    "lucene_version": "10.4.0",
    "minimum_wire_compatibility_version": "2.19.0",
    "minimum_index_compatibility_version": "2.0.0",
}


def operation_routes(
    ping: Callable[[], Awaitable[None]],
    metrics: Callable[[], bytes],
    version: str,
    gate: Gate,
    cluster: ASGIApp | None = None,
    page: str = "",
    problems: Callable[[], Sequence[str | None]] = tuple,
) -> list[Route]:
    """Return the routes of `/`, `/_health/live`, `/_health/ready` and `/metrics`.

    `ping` raises Unavailable while the store does not respond; `metrics` returns Prometheus' text format. Everyone may
    ask for the health. Metrics, why the store does not respond, and the `problems` of a server that is ready all the
    same are for this machine and for those who have the permission. `page` is the path, relative to `/`, to which a
    browser is sent from there; "" for none. Where requests go on to the `cluster`, `/` is the cluster's for all others:
    clients read its version there.
    """

    async def live(request: Request) -> Response:
        """Whether the process is alive."""
        return json_response(request, {"status": "live"})

    async def ready(request: Request) -> Response:
        """Whether the store responds."""
        error = await ping_error(ping)
        details = [problem for problem in problems() if problem is not None]
        if error is None and not details:
            return json_response(request, {"status": "ready"})
        may_know = _is_from_this_machine(request) or await _is_admitted(request, gate)
        if error is None:
            return json_response(request, {"status": "ready", **({"details": details} if may_know else {})})
        return error_response(request, error if may_know else Unavailable("The store does not respond"))

    async def show_metrics(request: Request) -> Response:
        """Return the metrics as Prometheus' text."""
        if not _is_from_this_machine(request):
            await gate.admit(request.scope, actions.METRICS_GET)
        return with_security_headers(request.scope, Response(metrics(), media_type=METRICS_CONTENT_TYPE))

    async def root(request: Request) -> ASGIApp:
        """Return the name and the versions."""
        if page and request.method == "GET" and "text/html" in request.headers.get("accept", "").lower():
            return with_security_headers(request.scope, Response(status_code=302, headers={"Location": page, **_VARY}))
        if cluster is not None:
            return cluster
        await gate.admit(request.scope)
        return json_response(request, _description(version))

    return [
        Route("/", root),
        Route("/_health/live", live),
        Route("/_health/ready", ready),
        Route(METRICS_PATH, show_metrics),
    ]


def _description(version: str) -> dict[str, Any]:
    return {
        "name": NAME,
        "cluster_name": NAME,
        "cluster_uuid": "_na_",
        "version": _API_VERSION,
        "sidecar_version": version,
        "tagline": "Streaming predictions for OpenSearch",
    }


async def ping_error(ping: Callable[[], Awaitable[None]]) -> MLStreamError | None:
    """Return why the store does not respond, None if it does."""
    try:
        async with asyncio.timeout(READY_SECONDS):
            await ping()
    except TimeoutError:
        return Unavailable(f"The store did not respond within {READY_SECONDS} s")
    except MLStreamError as error:
        return error
    return None


async def _is_admitted(request: Request, gate: Gate) -> bool:
    try:
        await gate.admit(request.scope, actions.METRICS_GET)
    except MLStreamError:
        return False
    return True


def _is_from_this_machine(request: Request) -> bool:
    return request.client is not None and ip_address(request.client.host).is_loopback
