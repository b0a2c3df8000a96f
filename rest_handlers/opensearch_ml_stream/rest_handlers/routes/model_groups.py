"""`/model_groups`: register, get, update, delete, search."""

from collections.abc import Mapping
from typing import Any

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.openapi.schemas import MODEL_GROUP, MODEL_GROUP_CHANGES, SEARCH
from opensearch_ml_stream.rest_handlers.resource_endpoint import (
    Entry,
    Operation,
    ParsedRequest,
    RequestBody,
    resource_routes,
)
from opensearch_ml_stream.rest_handlers.service_protocols import ModelGroups


def model_group_routes(groups: ModelGroups, entry: Entry) -> list[Route]:
    """Return the routes of `/model_groups`."""

    async def register(request: ParsedRequest) -> Mapping[str, Any]:
        """Register a model group."""
        return await groups.register(request.caller, request.body)

    async def get(request: ParsedRequest) -> Mapping[str, Any]:
        """Get a model group."""
        return await groups.get(request.caller, request.id)

    async def update(request: ParsedRequest) -> Mapping[str, Any]:
        """Change a model group's name or description."""
        return await groups.update(request.caller, request.id, request.body)

    async def delete(request: ParsedRequest) -> Mapping[str, Any]:
        """Delete a model group."""
        return await groups.delete(request.caller, request.id)

    async def search(request: ParsedRequest) -> Mapping[str, Any]:
        """Search model groups."""
        return await groups.search(request.caller, request.body, dashboards=request.dashboards)

    search_operation = Operation(search, actions.MODEL_GROUP_SEARCH, RequestBody.OPTIONAL, schema=SEARCH)
    item_operations = {
        "GET": Operation(get, actions.MODEL_GROUP_GET),
        "PUT": Operation(update, actions.MODEL_GROUP_UPDATE, RequestBody.REQUIRED, schema=MODEL_GROUP_CHANGES),
        "DELETE": Operation(delete, actions.MODEL_GROUP_DELETE),
    }
    return [
        *resource_routes(
            "/model_groups/_register",
            {"POST": Operation(register, actions.MODEL_GROUP_REGISTER, RequestBody.REQUIRED, schema=MODEL_GROUP)},
            entry,
        ),
        *resource_routes("/model_groups/_search", {"GET": search_operation, "POST": search_operation}, entry),
        *resource_routes("/model_groups/{id}", item_operations, entry),
    ]
