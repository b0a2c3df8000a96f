"""`/tasks`: get, delete, cancel, search."""

from collections.abc import Mapping
from typing import Any

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers.http.body_budget import BodyBudget
from opensearch_ml_stream.rest_handlers.openapi.schemas import SEARCH
from opensearch_ml_stream.rest_handlers.resource_endpoint import (
    Operation,
    ParsedRequest,
    RequestBody,
    resource_routes,
)
from opensearch_ml_stream.rest_handlers.service_protocols import Tasks


def task_routes(tasks: Tasks, bodies: BodyBudget) -> list[Route]:
    """Return the routes of `/tasks`."""

    async def get(request: ParsedRequest) -> Mapping[str, Any]:
        """Get a task."""
        return await tasks.get(request.id)

    async def delete(request: ParsedRequest) -> Mapping[str, Any]:
        """Delete a task."""
        return await tasks.delete(request.id)

    async def cancel(request: ParsedRequest) -> Mapping[str, Any]:
        """Cancel the batch job of a task."""
        return await tasks.cancel(request.id)

    async def search(request: ParsedRequest) -> Mapping[str, Any]:
        """Search tasks."""
        return await tasks.search(request.body, dashboards=request.dashboards)

    search_operation = Operation(search, RequestBody.OPTIONAL, schema=SEARCH)
    cancel_operations = {"POST": Operation(cancel, RequestBody.OPTIONAL)}
    return [
        *resource_routes("/tasks/_search", {"GET": search_operation, "POST": search_operation}, bodies),
        *resource_routes("/tasks/{id}/_cancel", cancel_operations, bodies),
        *resource_routes("/tasks/{id}/_cancel_batch", cancel_operations, bodies),  # as the documentation has it
        *resource_routes("/tasks/{id}", {"GET": Operation(get), "DELETE": Operation(delete)}, bodies),
    ]
