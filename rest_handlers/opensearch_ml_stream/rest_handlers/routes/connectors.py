"""`/connectors`: create, get, update, delete, search."""

from collections.abc import Mapping
from typing import Any

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers.resources import Body, Call, Operation, resource
from opensearch_ml_stream.rest_handlers.services import Connectors


def connector_routes(connectors: Connectors, max_body_size: int) -> list[Route]:
    async def create(call: Call) -> Mapping[str, Any]:
        return await connectors.create(call.body)

    async def get(call: Call) -> Mapping[str, Any]:
        return await connectors.get(call.id, dashboards=call.dashboards)

    async def update(call: Call) -> Mapping[str, Any]:
        return await connectors.update(call.id, call.body)

    async def delete(call: Call) -> Mapping[str, Any]:
        return await connectors.delete(call.id)

    async def search(call: Call) -> Mapping[str, Any]:
        return await connectors.search(call.body, dashboards=call.dashboards)

    searching = Operation(search, Body.OPTIONAL)
    one = {
        "GET": Operation(get, parameters=frozenset({"return_content"})),
        "PUT": Operation(update, Body.REQUIRED),
        "DELETE": Operation(delete),
    }
    return [
        *resource("/connectors/_create", {"POST": Operation(create, Body.REQUIRED)}, max_body_size),
        *resource("/connectors/_search", {"GET": searching, "POST": searching}, max_body_size),
        *resource("/connectors/{id}", one, max_body_size),
    ]
