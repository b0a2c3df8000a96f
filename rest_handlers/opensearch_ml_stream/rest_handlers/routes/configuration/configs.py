"""`/config`: get a config."""

from collections.abc import Mapping
from typing import Any

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.resource_endpoint import Entry, Operation, ParsedRequest, resource_routes
from opensearch_ml_stream.rest_handlers.service_protocols import Configs


def config_routes(configs: Configs, entry: Entry) -> list[Route]:
    """Return the route of `/config`."""

    async def get(request: ParsedRequest) -> Mapping[str, Any]:
        """Get a config; the master key is never shown."""
        return await configs.get(request.caller, request.id)

    return resource_routes("/config/{id}", {"GET": Operation(get, actions.CONFIG_GET)}, entry)
