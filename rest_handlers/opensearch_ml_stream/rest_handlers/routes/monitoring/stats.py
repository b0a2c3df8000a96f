"""`/stats`: what is stored, and how often this server and its models were called."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller
from opensearch_ml_stream.rest_handlers.openapi.schemas import STATS
from opensearch_ml_stream.rest_handlers.resource_endpoint import (
    Entry,
    Operation,
    ParsedRequest,
    RequestBody,
    resource_routes,
)
from opensearch_ml_stream.rest_handlers.routes.monitoring.other_nodes import OtherNodes


class Stats(Protocol):
    """The use case behind `/stats`. Errors are MLStreamErrors: Unavailable while the store does not respond."""

    async def named(self, caller: Caller, names: Sequence[str], node_ids: Sequence[str]) -> Mapping[str, Any]:
        """Return the stats of these names and nodes, all of them for none; InvalidRequest for an unknown name."""
        ...

    async def selected(self, caller: Caller, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the stats that a body selects; InvalidRequest for a body it does not take."""
        ...


def stats_routes(stats: Stats, entry: Entry, nodes: OtherNodes | None = None) -> list[Route]:
    """Return the routes of `/stats`, to stand behind all others: a node's id is the first part of some paths.

    A body, the same for all, says what is asked for; without one the path does. With `nodes` the response is that of
    the cluster's nodes, too.
    """

    async def get(request: ParsedRequest) -> Mapping[str, Any]:
        """Get statistics of store, server and models."""
        if request.body:
            own = await stats.selected(request.caller, request.body)
        else:
            own = await stats.named(request.caller, _parts(request, "stat"), _parts(request, "node_id"))
        return own if nodes is None else await nodes.add_to(own, request)

    everything = {"GET": Operation(get, actions.STATS_GET, RequestBody.OPTIONAL, schema=STATS)}
    chosen = {"GET": Operation(get, actions.STATS_GET, RequestBody.OPTIONAL)}
    return [
        *resource_routes("/stats/{stat}", chosen, entry),
        *resource_routes("/stats", everything, entry),
        *resource_routes("/{node_id}/stats/{stat}", chosen, entry),
        *resource_routes("/{node_id}/stats", chosen, entry),
    ]


def _parts(request: ParsedRequest, name: str) -> list[str]:
    return request.path[name].split(",") if name in request.path else []
