"""`/stats` and `/profile`: what is stored, what is running, how often this server and its models were called."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller
from opensearch_ml_stream.rest_handlers.openapi_schemas import PROFILE, STATS
from opensearch_ml_stream.rest_handlers.resource_endpoint import (
    Entry,
    Operation,
    ParsedRequest,
    RequestBody,
    resource_routes,
)


class OtherNodes(Protocol):
    """The nodes of a server behind this one."""

    async def add_to(self, own: Mapping[str, Any], request: ParsedRequest) -> Mapping[str, Any]:
        """Return this server's response merged with the other's; where both have a member, this server's is taken."""
        ...


_VIEW = {"view": {"enum": ["node", "model"]}}
_ALL_MODELS = {"return_all_models": True}
_ALL_TASKS = {"return_all_tasks": True}


class Profiles(Protocol):
    """The use case behind `/profile`. Errors are MLStreamErrors: Unavailable while the store does not respond."""

    async def get(self, caller: Caller, body: Mapping[str, Any], *, view: str) -> Mapping[str, Any]:
        """Return what the body asks for, in a `view` by node or model; InvalidRequest for a body it does not take."""
        ...


def profile_routes(profiles: Profiles, entry: Entry, nodes: OtherNodes | None = None) -> list[Route]:
    """Return the routes of `/profile`. A body, the same for all, says what is asked for; without one the path does.

    With `nodes` the response is that of the cluster's nodes, too.
    """

    async def profile(request: ParsedRequest, of_path: Mapping[str, Any]) -> Mapping[str, Any]:
        view = request.query.get("view", "node")
        own = await profiles.get(request.caller, request.body or of_path, view=view)
        return own if nodes is None else await nodes.add_to(own, request)

    async def get_models(request: ParsedRequest) -> Mapping[str, Any]:
        """Profile deployed models."""
        return await profile(request, {"model_ids": request.id.split(",")} if request.path else _ALL_MODELS)

    async def get_tasks(request: ParsedRequest) -> Mapping[str, Any]:
        """Profile running predictions."""
        return await profile(request, {"task_ids": request.id.split(",")} if request.path else _ALL_TASKS)

    async def get_all(request: ParsedRequest) -> Mapping[str, Any]:
        """Profile deployed models and running predictions."""
        return await profile(request, {**_ALL_MODELS, **_ALL_TASKS})

    of_models = Operation(get_models, actions.PROFILE_GET, RequestBody.OPTIONAL, other_parameters=_VIEW)
    of_tasks = Operation(get_tasks, actions.PROFILE_GET, RequestBody.OPTIONAL, other_parameters=_VIEW)
    of_all = Operation(get_all, actions.PROFILE_GET, RequestBody.OPTIONAL, schema=PROFILE, other_parameters=_VIEW)
    return [
        *resource_routes("/profile/models/{id}", {"GET": of_models}, entry),
        *resource_routes("/profile/models", {"GET": of_models}, entry),
        *resource_routes("/profile/tasks/{id}", {"GET": of_tasks}, entry),
        *resource_routes("/profile/tasks", {"GET": of_tasks}, entry),
        *resource_routes("/profile", {"GET": of_all}, entry),
    ]


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
