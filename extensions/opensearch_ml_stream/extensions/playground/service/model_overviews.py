"""What the list of models says of each beside its name: who may use it, and its limits and budgets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.registry.stored_documents import Json
from opensearch_ml_stream.plugin.security.access_control import PUBLIC
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller

OF_MODEL = ("model_group_id", "rate_limiter", "is_enabled")
"""The fields of a model's source that are read here."""


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
