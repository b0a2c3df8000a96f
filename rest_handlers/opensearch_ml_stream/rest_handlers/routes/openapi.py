"""`/openapi.json`: all routes as an OpenAPI document (https://spec.openapis.org/oas/v3.1.0)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.requests import COMMON_FLAGS, check_query, query
from opensearch_ml_stream.rest_handlers.http.responses import json_response
from opensearch_ml_stream.rest_handlers.openapi_schemas import ERROR, STRING
from opensearch_ml_stream.rest_handlers.operation_description import FLAG, OperationDescription, Schema, summary_of
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


_JSON = "application/json"
_OBJECT_TYPES = (_JSON, "application/yaml")  # other content types are strings


def openapi_document(
    routes: Iterable[BaseRoute], others: Mapping[str, Mapping[str, OperationDescription]], version: str
) -> dict[str, Any]:
    """Return the document. `others` are the operations, by path and method, of what is not among the routes.

    A route with `include_in_schema=False` is left out: a page's own.
    """
    described = dict(others)
    for route in routes:
        if not isinstance(route, Route) or not route.include_in_schema:
            continue
        if route.path == "/" or route.path_format.removesuffix("/") not in described:
            described[route.path_format] = _descriptions(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "opensearch-ml-stream",
            "version": version,
            "description": "Streaming predictions of remote models through the API of OpenSearch ML Commons.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {path: _path_item(path, operations) for path, operations in described.items()},
        "components": {
            "schemas": {"Error": ERROR},
            "parameters": {name: _query_parameter(name, schema) for name, schema in _common_parameters().items()},
            "responses": {
                "Error": {
                    "description": "What is wrong, as OpenSearch says it.",
                    "content": _object_content({"$ref": "#/components/schemas/Error"}),
                }
            },
        },
    }


def _descriptions(route: Route) -> Mapping[str, OperationDescription]:
    describe = getattr(route.endpoint, "describe", None)
    if describe is not None:
        descriptions: Mapping[str, OperationDescription] = describe()
        return descriptions
    description = OperationDescription(summary_of(route.endpoint), content_types=())
    return {method: description for method in sorted(route.methods or ()) if method != "HEAD"}


def _path_item(path: str, operations: Mapping[str, OperationDescription]) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", path)
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {**STRING, "minLength": 1}} for name in names
    ]
    shared = {"parameters": parameters} if parameters else {}
    return {**shared, **{method.lower(): _operation(method, path, operations[method]) for method in operations}}


def _operation(method: str, path: str, description: OperationDescription) -> dict[str, Any]:
    common = [
        {"$ref": f"#/components/parameters/{name}"}
        for name in _common_parameters()
        if description.is_of_ml_commons and name not in description.parameters
    ]
    own = [_query_parameter(name, schema) for name, schema in sorted(description.parameters.items())]
    content = {name: {"schema": STRING} for name in description.content_types if name != _JSON}
    if _JSON in description.content_types:
        content |= _content(description, description.response)
    operation: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", f"{method.lower()}{path}").strip("_"),
        "summary": description.summary,
        "parameters": [*common, *own],
        "responses": {
            "200": {"description": "Done.", **({"content": content} if content else {})},
            "default": {"$ref": "#/components/responses/Error"},
        },
    }
    if description.body is not None:
        operation["requestBody"] = {
            "required": description.is_body_required,
            "content": _content(description, description.body),
        }
    return operation


def _object_content(schema: Schema) -> dict[str, Any]:
    return {name: {"schema": schema} for name in _OBJECT_TYPES}


def _content(description: OperationDescription, schema: Schema) -> dict[str, Any]:
    return _object_content(schema) if description.is_of_ml_commons else {_JSON: {"schema": schema}}


def _query_parameter(name: str, schema: Schema) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema}


def _common_parameters() -> dict[str, Schema]:
    return {**dict.fromkeys(sorted(COMMON_FLAGS), FLAG), "filter_path": STRING, "format": {"enum": ["json", "yaml"]}}
