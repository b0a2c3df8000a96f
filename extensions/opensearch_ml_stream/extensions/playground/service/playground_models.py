"""Models as the playground shows them: a list to choose from, and the form for a call of each."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.documents import Connector, read_connector, read_model
from opensearch_ml_stream.connectors.errors import Conflict, Forbidden, InvalidRequest
from opensearch_ml_stream.connectors.model_options import InputOptions, read_sidecar_settings
from opensearch_ml_stream.connectors.predict.model_inputs import find_model_inputs
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.stream_spec_lookup import spec_for
from opensearch_ml_stream.extensions.playground.service.blueprint_models import BlueprintModels, NewModel
from opensearch_ml_stream.extensions.playground.service.model_form import FormParameter, ModelForm, find_model_form
from opensearch_ml_stream.plugin.connector_protocol import ModelAdditions, find_own_requests
from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.registry.model_settings import stored_settings
from opensearch_ml_stream.plugin.registry.stored_documents import IS_REMOTE, Json, connector_of, existing_model
from opensearch_ml_stream.plugin.security.access_control import PUBLIC
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller

MAX_LISTED = 1_000
_OF_MODEL = ("model_group_id", "rate_limiter", "is_enabled")
_AT_ONCE = 50  # models to read before the event loop serves other requests
_SHOWN = ["name", "description", "model_state", "connector_id", "connector", *_OF_MODEL]
_OF_CONNECTOR = ["name", "version", "protocol", "parameters", "actions"]
_FORM_OF_A_PROTOCOL = ModelForm("inputs", "inputs", (FormParameter("inputs", None),))


@dataclass(frozen=True, slots=True)
class StoredPlaygroundModels:
    """Models of the store as the playground shows, makes and deletes them."""

    store: Store
    registry: Registry
    made: BlueprintModels
    additions: ModelAdditions

    async def listed(self, caller: Caller, *, shows_settings: bool) -> Sequence[Json]:
        """Return the remote models that the caller may see, sorted by name, at most MAX_LISTED."""
        body: Json = {
            "query": IS_REMOTE,
            "size": MAX_LISTED,
            "sort": [{"name.keyword": "asc"}],
            "_source": _SHOWN,
        }
        found = (await self.registry.models.search(caller, body))["hits"]["hits"]
        sources: dict[str, Json] = {hit["_id"]: hit["_source"] for hit in found}
        connectors = await self._connectors(
            source["connector_id"] for source in sources.values() if "connector_id" in source
        )
        overviews = await ModelOverviews(self.store, self.registry).of(caller, sources) if shows_settings else {}
        listed: list[Json] = []
        for position, (model_id, source) in enumerate(sources.items()):
            if position % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
            connector = source.get("connector") or connectors.get(source.get("connector_id", ""))
            listed.append({**self._entry(model_id, source, connector), **overviews.get(model_id, {})})
        return sorted(listed, key=lambda entry: (entry["name"].casefold(), entry["id"]))

    async def form(self, caller: Caller, model_id: str, *, shows_connector: bool) -> Json:
        """Return the form for a call of a model; a connector's values only for who may see the connector."""
        source = (await existing_model(self.store, model_id)).source
        await self.registry.models.access.check(caller, source)
        model = read_model(source)
        connector, apart = await connector_of(self.store, source)
        if apart is not None:
            shows_connector = shows_connector and await self._may_see(caller, model.connector_id or "")
        own = find_own_requests(self.additions.protocols, model_id, connector)
        settings = read_sidecar_settings(await stored_settings(self.store, model_id), self.registry.models.options)
        form = _FORM_OF_A_PROTOCOL if own is not None else _form(connector, settings.of(InputOptions).prompt)
        return {
            "id": model_id,
            "name": model.name,
            "connector_id": model.connector_id,
            "kind": form.kind,
            "turn": form.turn,
            "parameters": [_parameter(one, shows_value=shows_connector) for one in form.parameters],
        }

    def blueprints(self) -> Sequence[Json]:
        """Return the blueprints that are installed."""
        return self.made.views()

    async def create(self, caller: Caller, blueprint: str, new: NewModel) -> Json:
        """Make a connector and a deployed model from a blueprint."""
        return await self.made.create(caller, blueprint, new)

    async def delete(self, caller: Caller, model_id: str, *, with_connector: bool) -> Json:
        """Undeploy and delete a model; its connector goes with it if the playground made it for this model alone."""
        connector_id = (await self.registry.models.get(caller, model_id)).get("connector_id")
        await self.registry.models.undeploy(caller, model_id, {})
        await self.registry.models.delete(caller, model_id)
        deleted = None
        if with_connector and connector_id is not None and await self.made.was_made_here(connector_id):
            deleted = await self._delete_connector(caller, connector_id)
        return {"model_id": model_id, "deleted_connector_id": deleted}

    async def _delete_connector(self, caller: Caller, connector_id: str) -> str | None:
        try:
            await self.registry.connectors.delete(caller, connector_id)
        except (Conflict, Forbidden):  # another model uses it, or it is somebody else's
            return None
        return connector_id

    async def _may_see(self, caller: Caller, connector_id: str) -> bool:
        try:
            await self.registry.connectors.get(caller, connector_id)
        except Forbidden:
            return False
        return True

    async def _connectors(self, ids: Iterable[str]) -> Mapping[str, Json]:
        """Return the documents of these connectors by id, without their credentials."""
        wanted = sorted({id for id in ids if id})
        if not wanted:
            return {}
        body: Json = {"query": {"ids": {"values": wanted}}, "size": len(wanted), "_source": _OF_CONNECTOR}
        hits = (await self.store.search(Index.CONNECTOR, body))["hits"]["hits"]
        return {hit["_id"]: hit["_source"] for hit in hits}

    def _entry(self, model_id: str, source: Json, connector: Json | None) -> dict[str, str | bool]:
        provider, can_stream = self._provider(model_id, connector or {})
        gives_vectors = not can_stream and _gives_vectors(connector or {})
        return {
            "id": model_id,
            "name": str(source.get("name", model_id)),
            "description": str(source.get("description") or ""),
            "provider": provider,
            "can_stream": can_stream,
            "gives_vectors": gives_vectors,
            "state": str(source.get("model_state", "")),
        }

    def _provider(self, model_id: str, document: Json) -> tuple[str, bool]:
        """Return the name of the stream that the connector's provider sends, and whether it can; "" for no name."""
        try:
            connector = read_connector(document)
            if (own := find_own_requests(self.additions.protocols, model_id, connector)) is not None:
                return own.spec.name, True
            return spec_for(connector, connector.action(), {}, self.additions.providers).name, True
        except InvalidRequest:  # there is no connector, it is broken, or it does not stream
            return "", False


def _gives_vectors(document: Json) -> bool:
    try:
        connector = read_connector(document)
        parameters = ConnectorParameters.compile(connector.parameters)
        return find_model_inputs(connector.action(), parameters).takes_texts
    except InvalidRequest:
        return False


def _form(connector: Connector, prompt: str | None) -> ModelForm:
    parameters = ConnectorParameters.compile(connector.parameters)
    return find_model_form(connector.action(), parameters, prompt, has_credential=bool(connector.credential))


def _parameter(parameter: FormParameter, *, shows_value: bool) -> Json:
    is_shown = shows_value or not parameter.is_of_connector
    return {
        "name": parameter.name,
        "default": parameter.default if is_shown else None,
        "required": parameter.is_required,
        "is_secret": False,
    }


@dataclass(frozen=True, slots=True)
class ModelOverviews:
    """Reads what belongs to many models at once, by one search of each index."""

    store: Store
    registry: Registry

    async def of(self, caller: Caller, models: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return `access`, `settings`, `rate_limiter` and `is_enabled` of models by id, for one who may get them.

        `access` is `{"mode", "owner", "roles"}` where modes of access hold for somebody, else None; `settings` are the
        sidecar's, as they were given.
        """
        settings = await self._sources(Index.MODEL_SETTINGS, models)
        groups = await self._groups(caller, models)
        return {
            model_id: {
                "access": _access(groups.get(source.get("model_group_id", ""))),
                "settings": settings.get(model_id, {}).get("settings", {}),
                "rate_limiter": source.get("rate_limiter"),
                "is_enabled": source.get("is_enabled") is not False,
            }
            for model_id, source in models.items()
        }

    async def _groups(self, caller: Caller, models: Mapping[str, Json]) -> Mapping[str, Json]:
        if not self.registry.models.access.groups.applies_to(caller):
            return {}
        return await self._sources(Index.MODEL_GROUP, (source.get("model_group_id", "") for source in models.values()))

    async def _sources(self, index: Index, ids: Iterable[str]) -> Mapping[str, Json]:
        wanted = sorted({id for id in ids if id})
        if not wanted:
            return {}
        body: Json = {"query": {"ids": {"values": wanted}}, "size": len(wanted)}
        hits = (await self.store.search(index, body))["hits"]["hits"]
        return {hit["_id"]: hit["_source"] for hit in hits}


def _access(group: Json | None) -> dict[str, Any] | None:
    if group is None or not group.get("owner"):  # without an owner it is everyone's
        return None
    return {
        "mode": group.get("access") or PUBLIC,
        "owner": group["owner"].get("name", ""),
        "roles": list(group.get("backend_roles") or ()),
    }
