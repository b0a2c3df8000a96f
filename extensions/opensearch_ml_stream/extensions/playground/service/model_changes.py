"""What the editor of a model shows and changes: of the model, its connector and limits, and of trusted servers."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.client.blueprints import Blueprint
from opensearch_ml_stream.connectors.errors import Forbidden
from opensearch_ml_stream.connectors.model_options import read_sidecar_settings
from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.registry.deployment_state_store import is_deployed
from opensearch_ml_stream.plugin.registry.model_settings import MEMBER
from opensearch_ml_stream.plugin.registry.stored_documents import Json, existing_model
from opensearch_ml_stream.plugin.settings.dynamic import DynamicSettings
from opensearch_ml_stream.plugin.settings.endpoint_permissions import EndpointPermissions, origin_pattern
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.plugin.upstream.addresses import has_private_address
from opensearch_ml_stream.plugin.upstream.target import parse_target
from opensearch_ml_stream.plugin.upstream.trusted_endpoints import is_allowed
from opensearch_ml_stream.rest_handlers.callers import Caller

_OF_THE_SIDECAR = "_"  # prefix of parameters for the sidecar, not for the provider


@dataclass(frozen=True, slots=True)
class ModelChange:
    """What is to be changed of a model; None stays as it is.

    Of `parameters`, `credential` and `settings` only the members that are given change. A member of `settings` that is
    null is removed.
    """

    name: str | None = None
    description: str | None = None
    parameters: Json | None = None
    credential: Mapping[str, str] | None = None
    settings: Json | None = None

    @property
    def of_model(self) -> dict[str, Any]:
        """The body of an update of the model."""
        given = {"name": self.name, "description": self.description, "_sidecar": self.settings}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def of_connector(self) -> dict[str, Any]:
        """The body of an update of its connector."""
        given = {"parameters": self.parameters, "credential": self.credential}
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, slots=True)
class ModelChanges:
    """A model as its editor shows it, and its changes, over the use cases of the API."""

    store: Store
    registry: Registry
    blueprints: Mapping[str, Blueprint]

    async def shown(self, caller: Caller, model_id: str, *, shows_connector: bool) -> Json:
        """Return what the editor of a model shows; of credentials their names alone."""
        model = await self.registry.models.get(caller, model_id)
        connector = await self._connector(caller, model_id, model) if shows_connector else None
        return {
            "id": model_id,
            "name": model["name"],
            "description": model.get("description") or "",
            "settings": model.get(MEMBER, {}),
            "connector": None if connector is None else self._editable(connector),
        }

    async def change(self, caller: Caller, model_id: str, change: ModelChange) -> Json:
        """Change the given fields of a model; wrong settings are refused before anything is changed."""
        model = await self.registry.models.get(caller, model_id)
        if change.settings is not None:
            merged = {**model.get(MEMBER, {}), **change.settings}
            given = {name: value for name, value in merged.items() if value is not None}
            read_sidecar_settings(given, self.registry.models.options)
        body = change.of_model
        if change.of_connector and model.get("connector_id"):
            await self._change_connector(caller, model_id, model, change.of_connector)
        elif change.of_connector:
            body["connector"] = change.of_connector
        if body:
            await self.registry.models.update(caller, model_id, body)
        return {"model_id": model_id}

    async def _change_connector(self, caller: Caller, model_id: str, model: Json, changes: Json) -> None:
        """Change a connector while its model is undeployed, as it must be; the model is deployed again in any case."""
        models = self.registry.models
        was_deployed = is_deployed(model)
        if was_deployed:
            await models.undeploy(caller, model_id, {})
        try:
            await self.registry.connectors.update(caller, model["connector_id"], changes)
        finally:
            if was_deployed:
                await models.deploy(caller, model_id, {})

    async def _connector(self, caller: Caller, model_id: str, model: Json) -> Json | None:
        """Return the stored connector of a model; None if it is deleted, or the caller may not see it."""
        if not model.get("connector_id"):
            return (await existing_model(self.store, model_id)).source.get("connector")
        document = await self.store.get(Index.CONNECTOR, model["connector_id"])
        if document is None:
            return None
        try:
            await self.registry.connectors.get(caller, model["connector_id"])
        except Forbidden:
            return None
        return document.source

    def _editable(self, connector: Json) -> Json:
        made_of = self._blueprint(connector)
        parameters: Mapping[str, Any] = connector.get("parameters") or {}
        helps = {} if made_of is None else made_of.parameters
        return {
            "blueprint": None if made_of is None else made_of.name,
            "credential": [_credential(name, made_of) for name in connector.get("credential") or ()],
            "parameters": [
                {"name": name, "value": value, "help": helps.get(name, ""), "is_explained": name in helps}
                for name, value in parameters.items()
                if not name.startswith(_OF_THE_SIDECAR)
            ],
        }

    def _blueprint(self, connector: Json) -> Blueprint | None:
        """Return the blueprint with the same actions as the connector, None without one."""
        calls = _calls(connector.get("actions") or ())
        return next((one for one in self.blueprints.values() if _calls(one.connector["actions"]) == calls), None)


def _calls(actions: Sequence[Json]) -> list[tuple[Any, Any]]:
    return [(action.get("url"), action.get("request_body")) for action in actions]


def _credential(name: str, made_of: Blueprint | None) -> Json:
    return {"name": name, "help": "" if made_of is None else made_of.credential.get(name, "")}


@dataclass(frozen=True, slots=True)
class AllowedServers:
    """The servers that connectors may call; allowed here as `opensearch-ml-stream endpoints allow` does."""

    settings: DynamicSettings

    async def allow(self, url: str) -> Json:
        """Let connectors call the server of a URL, at its private address too if it has one."""
        target = parse_target(url)
        origin = target.origins[0]
        needs_private = await asyncio.to_thread(has_private_address, target.host)
        before = EndpointPermissions.of({**self.settings.defaults(), **await self.settings.persistent()})
        after = before.with_pattern(origin_pattern(origin), is_private=needs_private)
        is_new = before != after and not is_allowed(url, before, needs_private=needs_private)
        if is_new:
            await self.settings.change(after.settings)
        return {"origin": origin, "is_private": needs_private, "is_new": is_new}
