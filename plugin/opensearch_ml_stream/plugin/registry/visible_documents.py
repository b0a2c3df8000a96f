"""What a caller may see of the stored documents, as queries, so that the store itself leaves out all else.

A model is as visible as its group, and everyone's without one; a task is as visible as its model.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

from opensearch_ml_stream.plugin.registry.stored_documents import MAX_FOUND, Json
from opensearch_ml_stream.plugin.registry.switched_access import connector_access, group_access
from opensearch_ml_stream.plugin.security.access_control import AccessControl, visible_to
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller

MAX_GROUPS = 10_000  # of one caller, as in ML Commons: models of further groups are not found
MAX_MODELS = 10_000  # of one caller: tasks of further models are not found

_WITHOUT_GROUP: Json = {"bool": {"must_not": [{"exists": {"field": "model_group_id"}}]}}


@dataclass(frozen=True, slots=True)
class VisibleDocuments:
    """Asks the store; costs nothing where the caller may see everything."""

    store: Store
    connectors: AccessControl
    groups: AccessControl

    @classmethod
    def of(cls, store: Store, live_settings: LiveSettings) -> Self:
        """Return what is visible in a store, controlled if the settings say so."""
        return cls(store, connector_access(live_settings), group_access(live_settings))

    def shows_all(self, caller: Caller, index: Index) -> bool:
        """Whether the caller may see every document of the index."""
        return caller.tenant_id is None and not self._restricts(caller, index)

    async def query(self, caller: Caller, index: Index) -> Json | None:
        """Return the query that finds what the caller may see in the index, None if that is everything."""
        filters = _of_tenant(caller)
        if self._restricts(caller, index):
            filters.append(await self._accessible(caller, index))
        return {"bool": {"filter": filters}} if filters else None

    async def models(self, caller: Caller, model_ids: Collection[str]) -> Collection[str]:
        """Return those of the models that the caller may see."""
        visible = await self.query(caller, Index.MODEL) if model_ids else None
        if visible is None:
            return model_ids
        ids, found = list(model_ids), set[str]()
        for start in range(0, len(ids), MAX_FOUND):
            wanted: Json = {"ids": {"values": ids[start : start + MAX_FOUND]}}
            found.update(await self._ids(Index.MODEL, [wanted, visible], MAX_FOUND))
        return found

    def _restricts(self, caller: Caller, index: Index) -> bool:
        control = self.connectors if index is Index.CONNECTOR else self.groups
        return control.restricts(caller)

    async def _accessible(self, caller: Caller, index: Index) -> Json:
        tenant = _of_tenant(caller)
        if index is Index.MODEL:
            groups = await self._ids(Index.MODEL_GROUP, [*tenant, visible_to(caller)], MAX_GROUPS)
            return {"bool": {"should": [{"terms": {"model_group_id": groups}}, _WITHOUT_GROUP]}}
        if index is Index.TASK:
            accessible = await self._accessible(caller, Index.MODEL)
            return {"terms": {"model_id": await self._ids(Index.MODEL, [*tenant, accessible], MAX_MODELS)}}
        return visible_to(caller)

    async def _ids(self, index: Index, filters: list[Json], size: int) -> list[str]:
        body = {"query": {"bool": {"filter": filters}}, "size": size, "_source": False}
        return [hit["_id"] for hit in (await self.store.search(index, body))["hits"]["hits"]]


def _of_tenant(caller: Caller) -> list[Json]:
    return [] if caller.tenant_id is None else [{"term": {"tenant_id": caller.tenant_id}}]
