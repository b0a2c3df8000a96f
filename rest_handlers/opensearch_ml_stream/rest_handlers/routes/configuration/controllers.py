"""`/controllers`: create, get, update and delete the limits of a model's users."""

from collections.abc import Mapping
from typing import Any

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.openapi.schemas import CONTROLLER
from opensearch_ml_stream.rest_handlers.resource_endpoint import (
    Entry,
    Operation,
    ParsedRequest,
    RequestBody,
    resource_routes,
)
from opensearch_ml_stream.rest_handlers.service_protocols import Controllers


def controller_routes(controllers: Controllers, entry: Entry) -> list[Route]:
    """Return the route of `/controllers`."""

    async def create(request: ParsedRequest) -> Mapping[str, Any]:
        """Create or replace a model's controller."""
        return await controllers.create(request.caller, request.id, request.body)

    async def get(request: ParsedRequest) -> Mapping[str, Any]:
        """Get a model's controller."""
        return await controllers.get(request.caller, request.id)

    async def update(request: ParsedRequest) -> Mapping[str, Any]:
        """Change a model's controller."""
        return await controllers.update(request.caller, request.id, request.body)

    async def delete(request: ParsedRequest) -> Mapping[str, Any]:
        """Delete a model's controller."""
        return await controllers.delete(request.caller, request.id)

    operations = {
        "POST": Operation(create, actions.CONTROLLER_CREATE, RequestBody.REQUIRED, schema=CONTROLLER),
        "GET": Operation(get, actions.CONTROLLER_GET, parameters=frozenset({"return_content"})),
        "PUT": Operation(update, actions.CONTROLLER_UPDATE, RequestBody.REQUIRED, schema=CONTROLLER),
        "DELETE": Operation(delete, actions.CONTROLLER_DELETE),
    }
    return resource_routes("/controllers/{id}", operations, entry)
