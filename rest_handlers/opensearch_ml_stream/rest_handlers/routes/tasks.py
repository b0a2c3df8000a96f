"""`/tasks`: get, delete, cancel, search."""

from collections.abc import Mapping
from typing import Any

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.openapi.schemas import SEARCH
from opensearch_ml_stream.rest_handlers.resource_endpoint import (
    Entry,
    Operation,
    ParsedRequest,
    RequestBody,
    resource_routes,
)
from opensearch_ml_stream.rest_handlers.service_protocols import Tasks


def task_routes(tasks: Tasks, entry: Entry) -> list[Route]:
    """Return the routes of `/tasks`."""

    async def get(request: ParsedRequest) -> Mapping[str, Any]:
        """Get a task."""
        return await tasks.get(request.caller, request.id)

    async def delete(request: ParsedRequest) -> Mapping[str, Any]:
        """Delete a task."""
        return await tasks.delete(request.caller, request.id)

    async def cancel(request: ParsedRequest) -> Mapping[str, Any]:
        """Cancel the batch job of a task."""
        return await tasks.cancel(request.caller, request.id)

    async def search(request: ParsedRequest) -> Mapping[str, Any]:
        """Search tasks."""
        return await tasks.search(request.caller, request.body, dashboards=request.dashboards)

    search_operation = Operation(search, actions.TASK_SEARCH, RequestBody.OPTIONAL, schema=SEARCH)
    cancel_operations = {"POST": Operation(cancel, actions.TASK_CANCEL, RequestBody.OPTIONAL)}
    return [
        *resource_routes("/tasks/_search", {"GET": search_operation, "POST": search_operation}, entry),
        *resource_routes("/tasks/{id}/_cancel", cancel_operations, entry),
        *resource_routes("/tasks/{id}/_cancel_batch", cancel_operations, entry),  # as the documentation has it
        *resource_routes(
            "/tasks/{id}",
            {"GET": Operation(get, actions.TASK_GET), "DELETE": Operation(delete, actions.TASK_DELETE)},
            entry,
        ),
    ]
