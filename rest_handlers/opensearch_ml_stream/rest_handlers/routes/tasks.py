"""`/tasks`: get, delete, cancel, search."""

from collections.abc import Mapping
from typing import Any

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers.resources import Body, Call, Operation, resource
from opensearch_ml_stream.rest_handlers.services import Tasks


def task_routes(tasks: Tasks, max_body_size: int) -> list[Route]:
    async def get(call: Call) -> Mapping[str, Any]:
        return await tasks.get(call.id)

    async def delete(call: Call) -> Mapping[str, Any]:
        return await tasks.delete(call.id)

    async def cancel(call: Call) -> Mapping[str, Any]:
        return await tasks.cancel(call.id)

    async def search(call: Call) -> Mapping[str, Any]:
        return await tasks.search(call.body, dashboards=call.dashboards)

    searching = Operation(search, Body.OPTIONAL)
    cancelling = {"POST": Operation(cancel, Body.OPTIONAL)}
    return [
        *resource("/tasks/_search", {"GET": searching, "POST": searching}, max_body_size),
        *resource("/tasks/{id}/_cancel", cancelling, max_body_size),
        *resource("/tasks/{id}/_cancel_batch", cancelling, max_body_size),  # as the documentation has it
        *resource("/tasks/{id}", {"GET": Operation(get), "DELETE": Operation(delete)}, max_body_size),
    ]
