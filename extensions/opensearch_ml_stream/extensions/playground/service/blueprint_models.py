"""Models made from blueprints: a connector and a deployed model at once, or neither."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from opensearch_ml_stream.client.blueprints import (
    Blueprint,
    connector_body,
    is_to_be_given,
    list_blueprints,
    model_body,
)
from opensearch_ml_stream.client.errors import RequestRefused
from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, NotFound
from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.registry.stored_documents import Json, find
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller

MADE_BY = "_made_by"
PLAYGROUND = "playground"
"""The parameter, and its value, that tell a connector of the playground from all others."""


@dataclass(frozen=True, slots=True)
class NewModel:
    """A model to make from a blueprint; without a name it gets the blueprint's."""

    name: str | None = None
    credential: Mapping[str, str] = field(default_factory=dict)
    parameters: Json = field(default_factory=dict)


def installed_blueprints() -> Mapping[str, Blueprint]:
    """Return the blueprints of this installation by name, in the order of their names; none if it has none."""
    with suppress(RequestRefused):
        return {blueprint.name: blueprint for blueprint in list_blueprints()}
    return {}


@dataclass(frozen=True, slots=True)
class BlueprintModels:
    """Makes models from blueprints, over the use cases of the API."""

    store: Store
    registry: Registry
    blueprints: Mapping[str, Blueprint] = field(default_factory=installed_blueprints)

    def views(self) -> Sequence[Json]:
        """Return the blueprints as forms: the credentials and the parameters that each explains."""
        return [_view(blueprint) for blueprint in self.blueprints.values()]

    async def create(self, caller: Caller, name: str, new: NewModel) -> Json:
        """Make a connector and a deployed model; if that fails in between, nothing of them stays."""
        blueprint = self.blueprints.get(name)
        if blueprint is None:
            raise NotFound(f"No blueprint is named [{name}]")
        parameters = {**new.parameters, MADE_BY: PLAYGROUND}
        try:
            body = connector_body(blueprint, parameters, new.credential, new.name)
        except RequestRefused as error:
            raise InvalidRequest(error.reason) from error
        models, connectors = self.registry.models, self.registry.connectors
        async with AsyncExitStack() as undo:
            connector_id = (await connectors.create(caller, body))["connector_id"]
            undo.push_async_callback(_quietly, connectors.delete, caller, connector_id)
            registration = model_body(blueprint, connector_id, new.name)
            await self._undo_group(undo, caller, registration["name"])
            undo.push_async_callback(self._delete_models, caller, connector_id)
            model_id = (await models.register(caller, registration))["model_id"]
            await models.deploy(caller, model_id, {})
            undo.pop_all()
        return {"model_id": model_id, "connector_id": connector_id}

    async def was_made_here(self, connector_id: str) -> bool:
        """Whether the playground made the connector."""
        document = await self.store.get(Index.CONNECTOR, connector_id)
        return document is not None and (document.source.get("parameters") or {}).get(MADE_BY) == PLAYGROUND

    async def _delete_models(self, caller: Caller, connector_id: str) -> None:
        """Delete the model of a new connector: a registration that failed may have stored it."""
        with suppress(MLStreamError):
            for model_id, _ in await find(self.store, Index.MODEL, "connector_id", connector_id):
                await _quietly(self.registry.models.undeploy, caller, model_id, {})
                await self.registry.models.delete(caller, model_id)

    async def _undo_group(self, undo: AsyncExitStack, caller: Caller, name: str) -> None:
        """If no group has the model's name, let `undo` delete the one that the registration will create."""
        if not await find(self.store, Index.MODEL_GROUP, "name", name, caller.tenant_id):
            undo.push_async_callback(self._delete_group, caller, name)

    async def _delete_group(self, caller: Caller, name: str) -> None:
        with suppress(MLStreamError):  # as when another model was added to it
            for group_id, _ in await find(self.store, Index.MODEL_GROUP, "name", name, caller.tenant_id):
                await self.registry.model_groups.delete(caller, group_id)


async def _quietly(undo: Any, caller: Caller, *what: Any) -> None:
    """Undo one step, and suppress its errors: the error that caused the undoing is the one to show."""
    with suppress(MLStreamError):
        await undo(caller, *what)


def _view(blueprint: Blueprint) -> Json:
    given = blueprint.connector.get("parameters") or {}
    filled = blueprint.connector.get("credential") or {}
    return {
        "name": blueprint.name,
        "title": blueprint.model.get("name") or blueprint.name,
        "description": blueprint.description,
        "credential": [
            {"name": name, "required": is_to_be_given(filled.get(name)), "help": help_text}
            for name, help_text in blueprint.credential.items()
        ],
        "parameters": [
            {
                "name": name,
                "default": None if name in blueprint.required else _default(given.get(name)),
                "required": name in blueprint.required or is_to_be_given(given.get(name)),
                "help": help_text,
            }
            for name, help_text in blueprint.parameters.items()
        ],
    }


def _default(value: Any) -> Any:
    """Return a value of the blueprint's connector; None for one like `<region>`, which is to be given."""
    return None if is_to_be_given(value) else value
