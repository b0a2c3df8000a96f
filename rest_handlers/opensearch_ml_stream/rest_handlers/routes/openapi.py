"""`/openapi.json`: the description of all routes, for programs that make clients, tests or pages from it."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.requests import check_query, query
from opensearch_ml_stream.rest_handlers.http.responses import json_response
from opensearch_ml_stream.rest_handlers.openapi.description import OperationDescription
from opensearch_ml_stream.rest_handlers.openapi.openapi_document import openapi_document
from opensearch_ml_stream.rest_handlers.routes.predict_stream import PREDICT_OPERATIONS


def openapi_routes(
    routes: Sequence[BaseRoute], others: Mapping[str, Mapping[str, OperationDescription]], version: str, gate: Gate
) -> list[Route]:
    """Return the routes of `/openapi.json`, which describes `routes`, predictions, itself, and what `others` say."""
    document: dict[str, Any] = {}

    async def show(request: Request) -> Response:
        """Describe all routes as OpenAPI 3.1."""
        await gate.admit(request.scope)
        check_query(request.scope, query(request.scope))
        return json_response(request, document)

    path = BASE_PATH + "/openapi.json"
    own = [Route(path, show), Route(path + "/", show)]
    document |= openapi_document([*routes, *own], {**PREDICT_OPERATIONS, **others}, version)
    return own
