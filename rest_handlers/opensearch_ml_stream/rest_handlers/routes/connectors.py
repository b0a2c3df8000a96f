"""`/connectors`: create, get, update, delete, search."""

from collections.abc import Mapping
from typing import Any

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers.http.body_budget import BodyBudget
from opensearch_ml_stream.rest_handlers.openapi.schemas import CONNECTOR, CONNECTOR_CHANGES, SEARCH
from opensearch_ml_stream.rest_handlers.resource_endpoint import (
    Operation,
    ParsedRequest,
    RequestBody,
    resource_routes,
)
from opensearch_ml_stream.rest_handlers.service_protocols import Connectors


def connector_routes(connectors: Connectors, bodies: BodyBudget) -> list[Route]:
    """Return the routes of `/connectors`."""

    async def create(request: ParsedRequest) -> Mapping[str, Any]:
        """Create a connector; with `dry_run`, only check it."""
        return await connectors.create(request.body)

    async def get(request: ParsedRequest) -> Mapping[str, Any]:
        """Get a connector."""
        return await connectors.get(request.id, dashboards=request.dashboards)

    async def update(request: ParsedRequest) -> Mapping[str, Any]:
        """Change a connector."""
        return await connectors.update(request.id, request.body)

    async def delete(request: ParsedRequest) -> Mapping[str, Any]:
        """Delete a connector."""
        return await connectors.delete(request.id)

    async def search(request: ParsedRequest) -> Mapping[str, Any]:
        """Search connectors."""
        return await connectors.search(request.body, dashboards=request.dashboards)

    search_operation = Operation(search, RequestBody.OPTIONAL, schema=SEARCH)
    item_operations = {
        "GET": Operation(get, parameters=frozenset({"return_content"})),
        "PUT": Operation(update, RequestBody.REQUIRED, schema=CONNECTOR_CHANGES),
        "DELETE": Operation(delete),
    }
    return [
        *resource_routes(
            "/connectors/_create", {"POST": Operation(create, RequestBody.REQUIRED, schema=CONNECTOR)}, bodies
        ),
        *resource_routes("/connectors/_search", {"GET": search_operation, "POST": search_operation}, bodies),
        *resource_routes("/connectors/{id}", item_operations, bodies),
    ]
