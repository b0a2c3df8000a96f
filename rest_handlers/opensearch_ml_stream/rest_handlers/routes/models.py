"""`/models`: register, get, update, delete, search, deploy, undeploy, under their new and their old names."""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers.resources import Body, Call, Operation, resource
from opensearch_ml_stream.rest_handlers.services import Models


def model_routes(models: Models, max_body_size: int) -> list[Route]:
    def at(operations: Mapping[str, Operation], *paths: str) -> list[Route]:
        return [route for path in paths for route in resource(path, operations, max_body_size)]

    registering = Operation(_register(models), Body.REQUIRED, frozenset({"deploy", "load"}))
    searching = Operation(_search(models), Body.OPTIONAL)
    one = _one(models)
    deploying, undeploying, undeploying_many = _deploying(models)
    return [
        *at({"POST": registering}, "/models/_register", "/models/_upload"),
        *at({"GET": searching, "POST": searching}, "/models/_search"),
        *at({"POST": undeploying_many}, "/models/_undeploy", "/models/_unload"),
        *at({"POST": deploying}, "/models/{id}/_deploy", "/models/{id}/_load"),
        *at({"POST": undeploying}, "/models/{id}/_undeploy", "/models/{id}/_unload"),
        *at({"POST": registering}, "/models/{id}/{version}/_register", "/models/{id}/{version}/_upload"),
        *at(one, "/models/{id}"),
    ]


def _register(models: Models) -> Callable[[Call], Any]:
    async def register(call: Call) -> Mapping[str, Any]:
        body = dict(call.body)
        if call.path:  # the old form: the name and the version stand in the path
            body |= {"name": call.id, "version": call.path["version"]}
        return await models.register(body, deploy=call.flag("deploy") or call.flag("load"))

    return register


def _search(models: Models) -> Callable[[Call], Any]:
    async def search(call: Call) -> Mapping[str, Any]:
        return await models.search(call.body, dashboards=call.dashboards)

    return search


def _one(models: Models) -> dict[str, Operation]:
    async def get(call: Call) -> Mapping[str, Any]:
        return await models.get(call.id, dashboards=call.dashboards)

    async def update(call: Call) -> Mapping[str, Any]:
        return await models.update(call.id, call.body)

    async def delete(call: Call) -> Mapping[str, Any]:
        return await models.delete(call.id)

    return {
        "GET": Operation(get, parameters=frozenset({"return_content"})),
        "PUT": Operation(update, Body.REQUIRED),
        "DELETE": Operation(delete),
    }


def _deploying(models: Models) -> tuple[Operation, Operation, Operation]:
    async def deploy(call: Call) -> Mapping[str, Any]:
        return await models.deploy(call.id, call.body)

    async def undeploy(call: Call) -> Mapping[str, Any]:
        return await models.undeploy(call.id)

    async def undeploy_many(call: Call) -> Mapping[str, Any]:
        return await models.undeploy_many(call.body)

    return (
        Operation(deploy, Body.OPTIONAL),
        Operation(undeploy, Body.OPTIONAL),
        Operation(undeploy_many, Body.OPTIONAL),
    )
