"""Routes of stored resources: create, get, update, delete, search."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.openapi_schemas import (
    CONNECTOR,
    CONNECTOR_CHANGES,
    CONTROLLER,
    MODEL_GROUP,
    MODEL_GROUP_CHANGES,
    MODEL_IDS,
    SEARCH,
    model,
    model_changes,
)
from opensearch_ml_stream.rest_handlers.resource_endpoint import (
    Entry,
    Operation,
    ParsedRequest,
    RequestBody,
    resource_routes,
)
from opensearch_ml_stream.rest_handlers.service_protocols import (
    Configs,
    Connectors,
    Controllers,
    ManagementServices,
    ModelGroups,
    Models,
    Tasks,
)

NO_OPTIONS: Mapping[str, type] = MappingProxyType({})


def management_routes(
    services: ManagementServices, entry: Entry, model_options: Mapping[str, type] = NO_OPTIONS
) -> list[Route]:
    """Return the routes in the order in which they must be tried: a name before an id.

    `model_options` are the members of a model's `_sidecar` that extensions add.
    """
    return [
        *connector_routes(services.connectors, entry),
        *model_routes(services.models, entry, model_options),
        *model_group_routes(services.model_groups, entry),
        *task_routes(services.tasks, entry),
        *controller_routes(services.controllers, entry),
        *config_routes(services.configs, entry),
    ]


def connector_routes(connectors: Connectors, entry: Entry) -> list[Route]:
    """Return the routes of `/connectors`."""

    async def create(request: ParsedRequest) -> Mapping[str, Any]:
        """Create a connector; with `dry_run`, only check it."""
        return await connectors.create(request.caller, request.body)

    async def get(request: ParsedRequest) -> Mapping[str, Any]:
        """Get a connector."""
        return await connectors.get(request.caller, request.id, dashboards=request.dashboards)

    async def update(request: ParsedRequest) -> Mapping[str, Any]:
        """Change a connector."""
        return await connectors.update(request.caller, request.id, request.body)

    async def delete(request: ParsedRequest) -> Mapping[str, Any]:
        """Delete a connector."""
        return await connectors.delete(request.caller, request.id)

    async def search(request: ParsedRequest) -> Mapping[str, Any]:
        """Search connectors."""
        return await connectors.search(request.caller, request.body, dashboards=request.dashboards)

    search_operation = Operation(search, actions.CONNECTOR_SEARCH, RequestBody.OPTIONAL, schema=SEARCH)
    item_operations = {
        "GET": Operation(get, actions.CONNECTOR_GET, parameters=frozenset({"return_content"})),
        "PUT": Operation(update, actions.CONNECTOR_UPDATE, RequestBody.REQUIRED, schema=CONNECTOR_CHANGES),
        "DELETE": Operation(delete, actions.CONNECTOR_DELETE),
    }
    return [
        *resource_routes(
            "/connectors/_create",
            {"POST": Operation(create, actions.CONNECTOR_CREATE, RequestBody.REQUIRED, schema=CONNECTOR)},
            entry,
        ),
        *resource_routes("/connectors/_search", {"GET": search_operation, "POST": search_operation}, entry),
        *resource_routes("/connectors/{id}", item_operations, entry),
    ]


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


def model_group_routes(groups: ModelGroups, entry: Entry) -> list[Route]:
    """Return the routes of `/model_groups`."""

    async def register(request: ParsedRequest) -> Mapping[str, Any]:
        """Register a model group."""
        return await groups.register(request.caller, request.body)

    async def get(request: ParsedRequest) -> Mapping[str, Any]:
        """Get a model group."""
        return await groups.get(request.caller, request.id)

    async def update(request: ParsedRequest) -> Mapping[str, Any]:
        """Change a model group's name or description."""
        return await groups.update(request.caller, request.id, request.body)

    async def delete(request: ParsedRequest) -> Mapping[str, Any]:
        """Delete a model group."""
        return await groups.delete(request.caller, request.id)

    async def search(request: ParsedRequest) -> Mapping[str, Any]:
        """Search model groups."""
        return await groups.search(request.caller, request.body, dashboards=request.dashboards)

    search_operation = Operation(search, actions.MODEL_GROUP_SEARCH, RequestBody.OPTIONAL, schema=SEARCH)
    item_operations = {
        "GET": Operation(get, actions.MODEL_GROUP_GET),
        "PUT": Operation(update, actions.MODEL_GROUP_UPDATE, RequestBody.REQUIRED, schema=MODEL_GROUP_CHANGES),
        "DELETE": Operation(delete, actions.MODEL_GROUP_DELETE),
    }
    return [
        *resource_routes(
            "/model_groups/_register",
            {"POST": Operation(register, actions.MODEL_GROUP_REGISTER, RequestBody.REQUIRED, schema=MODEL_GROUP)},
            entry,
        ),
        *resource_routes("/model_groups/_search", {"GET": search_operation, "POST": search_operation}, entry),
        *resource_routes("/model_groups/{id}", item_operations, entry),
    ]


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


def controller_routes(controllers: Controllers, entry: Entry) -> list[Route]:
    """Return the route of `/controllers`."""

    async def create(request: ParsedRequest) -> Mapping[str, Any]:
        """Create or replace a model's controller."""
        return await controllers.create(request.caller, request.id, request.body)

    async def get(request: ParsedRequest) -> Mapping[str, Any]:
        """Get a model's controller."""
        return await controllers.get(request.caller, request.id)

    async def update(request: ParsedRequest) -> Mapping[str, Any]:
        """Change a model's controller."""
        return await controllers.update(request.caller, request.id, request.body)

    async def delete(request: ParsedRequest) -> Mapping[str, Any]:
        """Delete a model's controller."""
        return await controllers.delete(request.caller, request.id)

    operations = {
        "POST": Operation(create, actions.CONTROLLER_CREATE, RequestBody.REQUIRED, schema=CONTROLLER),
        "GET": Operation(get, actions.CONTROLLER_GET, parameters=frozenset({"return_content"})),
        "PUT": Operation(update, actions.CONTROLLER_UPDATE, RequestBody.REQUIRED, schema=CONTROLLER),
        "DELETE": Operation(delete, actions.CONTROLLER_DELETE),
    }
    return resource_routes("/controllers/{id}", operations, entry)


def config_routes(configs: Configs, entry: Entry) -> list[Route]:
    """Return the route of `/config`."""

    async def get(request: ParsedRequest) -> Mapping[str, Any]:
        """Get a config; the master key is never shown."""
        return await configs.get(request.caller, request.id)

    return resource_routes("/config/{id}", {"GET": Operation(get, actions.CONFIG_GET)}, entry)
