"""`/openapi.json`: the description of all routes, for programs that make clients, tests or pages from it."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.routing import BaseRoute, Route

from opensearch_ml_stream.rest_handlers.openapi.document import openapi_document
from opensearch_ml_stream.rest_handlers.resource_endpoint import Operation, ParsedRequest, resource_routes
from opensearch_ml_stream.rest_handlers.routes.predict_stream import STREAM_OPERATIONS


def openapi_routes(routes: Sequence[BaseRoute], version: str) -> list[Route]:
    """Return the routes of `/openapi.json`, which describes `routes`, the stream's and itself."""
    document: dict[str, Any] = {}

    async def show(request: ParsedRequest) -> Mapping[str, Any]:
        """Describe all routes as OpenAPI 3.1."""
        return document

    own = resource_routes("/openapi.json", {"GET": Operation(show)}, max_body_size=0)
    document |= openapi_document([*routes, *own], STREAM_OPERATIONS, version)
    return own
