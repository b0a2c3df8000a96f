"""`/profile`: deployed models and running predictions of this server."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers.http.body_budget import BodyBudget
from opensearch_ml_stream.rest_handlers.openapi.schemas import PROFILE
from opensearch_ml_stream.rest_handlers.resource_endpoint import (
    Operation,
    ParsedRequest,
    RequestBody,
    resource_routes,
)

_VIEW = {"view": {"enum": ["node", "model"]}}
_ALL_MODELS = {"return_all_models": True}
_ALL_TASKS = {"return_all_tasks": True}


class Profiles(Protocol):
    """The use case behind `/profile`. Errors are MLStreamErrors: Unavailable while the store does not respond."""

    async def get(self, body: Mapping[str, Any], *, view: str) -> Mapping[str, Any]:
        """Return what the body asks for, in a `view` by node or model; InvalidRequest for a body it does not take."""
        ...


def profile_routes(profiles: Profiles, bodies: BodyBudget) -> list[Route]:
    """Return the routes of `/profile`. A body says what is asked for; without one the path does."""

    async def profile(request: ParsedRequest, of_path: Mapping[str, Any]) -> Mapping[str, Any]:
        return await profiles.get(request.body or of_path, view=request.query.get("view", "node"))

    async def get_models(request: ParsedRequest) -> Mapping[str, Any]:
        """Profile deployed models."""
        return await profile(request, {"model_ids": request.id.split(",")} if request.path else _ALL_MODELS)

    async def get_tasks(request: ParsedRequest) -> Mapping[str, Any]:
        """Profile running predictions."""
        return await profile(request, {"task_ids": request.id.split(",")} if request.path else _ALL_TASKS)

    async def get_all(request: ParsedRequest) -> Mapping[str, Any]:
        """Profile deployed models and running predictions."""
        return await profile(request, {**_ALL_MODELS, **_ALL_TASKS})

    handlers = {
        "/models/{id}": get_models,
        "/models": get_models,
        "/tasks/{id}": get_tasks,
        "/tasks": get_tasks,
        "": get_all,
    }
    return [
        route
        for path, handle in handlers.items()
        for route in resource_routes(f"/profile{path}", {"GET": _operation(handle)}, bodies)
    ]


def _operation(handle: Callable[[ParsedRequest], Awaitable[Mapping[str, Any]]]) -> Operation:
    return Operation(handle, RequestBody.OPTIONAL, schema=PROFILE, other_parameters=_VIEW)
