"""`/model_groups`: register, get, update, delete, search."""

from collections.abc import Mapping
from typing import Any

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers.resources import Body, Call, Operation, resource
from opensearch_ml_stream.rest_handlers.services import ModelGroups


def model_group_routes(groups: ModelGroups, max_body_size: int) -> list[Route]:
    async def register(call: Call) -> Mapping[str, Any]:
        return await groups.register(call.body)

    async def get(call: Call) -> Mapping[str, Any]:
        return await groups.get(call.id)

    async def update(call: Call) -> Mapping[str, Any]:
        return await groups.update(call.id, call.body)

    async def delete(call: Call) -> Mapping[str, Any]:
        return await groups.delete(call.id)

    async def search(call: Call) -> Mapping[str, Any]:
        return await groups.search(call.body, dashboards=call.dashboards)

    searching = Operation(search, Body.OPTIONAL)
    one = {"GET": Operation(get), "PUT": Operation(update, Body.REQUIRED), "DELETE": Operation(delete)}
    return [
        *resource("/model_groups/_register", {"POST": Operation(register, Body.REQUIRED)}, max_body_size),
        *resource("/model_groups/_search", {"GET": searching, "POST": searching}, max_body_size),
        *resource("/model_groups/{id}", one, max_body_size),
    ]
