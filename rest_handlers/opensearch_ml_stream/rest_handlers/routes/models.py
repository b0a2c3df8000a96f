"""`/models`: register, get, update, delete, search, deploy, undeploy, under their new and their old names."""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.openapi.schemas import MODEL_IDS, SEARCH, model, model_changes
from opensearch_ml_stream.rest_handlers.resource_endpoint import (
    Entry,
    Operation,
    ParsedRequest,
    RequestBody,
    resource_routes,
)
from opensearch_ml_stream.rest_handlers.service_protocols import Models


def model_routes(models: Models, entry: Entry, options: Mapping[str, type]) -> list[Route]:
    """Return the routes of `/models`; `options` are the members of `_sidecar` that extensions add."""

    def at(operations: Mapping[str, Operation], *paths: str) -> list[Route]:
        return [route for path in paths for route in resource_routes(path, operations, entry)]

    register = Operation(
        _register(models, entry.gate),
        actions.MODEL_REGISTER,
        RequestBody.REQUIRED,
        frozenset({"deploy"}),
        model(options),
    )
    search = Operation(_search(models), actions.MODEL_SEARCH, RequestBody.OPTIONAL, schema=SEARCH)
    item_operations = _item_operations(models, options)
    deploy, undeploy, undeploy_many = _deployment_operations(models)
    return [
        *at({"POST": register}, "/models/_register", "/models/_upload"),
        *at({"GET": search, "POST": search}, "/models/_search"),
        *at({"POST": undeploy_many}, "/models/_undeploy", "/models/_unload"),
        *at({"POST": deploy}, "/models/{id}/_deploy", "/models/{id}/_load"),
        *at({"POST": undeploy}, "/models/{id}/_undeploy", "/models/{id}/_unload"),
        *at({"POST": register}, "/models/{id}/{version}/_register", "/models/{id}/{version}/_upload"),
        *at(item_operations, "/models/{id}"),
    ]


def _register(models: Models, gate: Gate) -> Callable[[ParsedRequest], Any]:
    async def register(request: ParsedRequest) -> Mapping[str, Any]:
        """Register a model; with `deploy`, deploy it."""
        body = dict(request.body)
        if body.get("connector") is not None and not body.get("connector_id"):  # it makes a connector, too
            await gate.admit(request.scope, actions.CONNECTOR_CREATE)
        if request.path:  # the old form: the name and the version stand in the path
            body |= {"name": request.id, "version": request.path["version"]}
        return await models.register(request.caller, body, deploy=request.flag("deploy"))

    return register


def _search(models: Models) -> Callable[[ParsedRequest], Any]:
    async def search(request: ParsedRequest) -> Mapping[str, Any]:
        """Search models."""
        return await models.search(request.caller, request.body, dashboards=request.dashboards)

    return search


def _item_operations(models: Models, options: Mapping[str, type]) -> dict[str, Operation]:
    async def get(request: ParsedRequest) -> Mapping[str, Any]:
        """Get a model."""
        return await models.get(request.caller, request.id, dashboards=request.dashboards)

    async def update(request: ParsedRequest) -> Mapping[str, Any]:
        """Change a model."""
        return await models.update(request.caller, request.id, request.body)

    async def delete(request: ParsedRequest) -> Mapping[str, Any]:
        """Delete a model."""
        return await models.delete(request.caller, request.id)

    return {
        "GET": Operation(get, actions.MODEL_GET, parameters=frozenset({"return_content"})),
        "PUT": Operation(update, actions.MODEL_UPDATE, RequestBody.REQUIRED, schema=model_changes(options)),
        "DELETE": Operation(delete, actions.MODEL_DELETE),
    }


def _deployment_operations(models: Models) -> tuple[Operation, Operation, Operation]:
    async def deploy(request: ParsedRequest) -> Mapping[str, Any]:
        """Deploy a model."""
        return await models.deploy(request.caller, request.id, request.body)

    async def undeploy(request: ParsedRequest) -> Mapping[str, Any]:
        """Undeploy a model."""
        return await models.undeploy(request.caller, request.id, request.body)

    async def undeploy_many(request: ParsedRequest) -> Mapping[str, Any]:
        """Undeploy several models."""
        return await models.undeploy_many(request.caller, request.body)

    return (
        Operation(deploy, actions.MODEL_DEPLOY, RequestBody.OPTIONAL),
        Operation(undeploy, actions.MODEL_UNDEPLOY, RequestBody.OPTIONAL),
        Operation(undeploy_many, actions.MODEL_UNDEPLOY, RequestBody.OPTIONAL, schema=MODEL_IDS),
    )
