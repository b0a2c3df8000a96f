"""`/connectors`: create, get, update, delete, search."""

from collections.abc import Mapping
from typing import Any

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.openapi.schemas import CONNECTOR, CONNECTOR_CHANGES, SEARCH
from opensearch_ml_stream.rest_handlers.resource_endpoint import (
    Entry,
    Operation,
    ParsedRequest,
    RequestBody,
    resource_routes,
)
from opensearch_ml_stream.rest_handlers.service_protocols import Connectors


def connector_routes(connectors: Connectors, entry: Entry) -> list[Route]:
    """Return the routes of `/connectors`."""

    async def create(request: ParsedRequest) -> Mapping[str, Any]:
        """Create a connector; with `dry_run`, only check it."""
        return await connectors.create(request.caller, request.body)

    async def get(request: ParsedRequest) -> Mapping[str, Any]:
        """Get a connector."""
        return await connectors.get(request.caller, request.id, dashboards=request.dashboards)

    async def update(request: ParsedRequest) -> Mapping[str, Any]:
        """Change a connector."""
        return await connectors.update(request.caller, request.id, request.body)

    async def delete(request: ParsedRequest) -> Mapping[str, Any]:
        """Delete a connector."""
        return await connectors.delete(request.caller, request.id)

    async def search(request: ParsedRequest) -> Mapping[str, Any]:
        """Search connectors."""
        return await connectors.search(request.caller, request.body, dashboards=request.dashboards)

    search_operation = Operation(search, actions.CONNECTOR_SEARCH, RequestBody.OPTIONAL, schema=SEARCH)
    item_operations = {
        "GET": Operation(get, actions.CONNECTOR_GET, parameters=frozenset({"return_content"})),
        "PUT": Operation(update, actions.CONNECTOR_UPDATE, RequestBody.REQUIRED, schema=CONNECTOR_CHANGES),
        "DELETE": Operation(delete, actions.CONNECTOR_DELETE),
    }
    return [
        *resource_routes(
            "/connectors/_create",
            {"POST": Operation(create, actions.CONNECTOR_CREATE, RequestBody.REQUIRED, schema=CONNECTOR)},
            entry,
        ),
        *resource_routes("/connectors/_search", {"GET": search_operation, "POST": search_operation}, entry),
        *resource_routes("/connectors/{id}", item_operations, entry),
    ]
