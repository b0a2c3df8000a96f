"""Models by name or id and version, as clients of the V2 protocol address them.

A name is that of a registered model, a version the `model_version` that ML Commons counts: 1 or v1. The models of one
name in one group are its versions; without a version the newest is meant. If several groups have models of a name, it
means those of the first group that had it, so nobody can take over a name by registering another model. An id always
means the model with that id. A model that speaks V2 may also have a version of its own.

As in MLServer, a model that was undeployed or unloaded is not found until it is loaded again, or a prediction of ML
Commons' API has deployed it. A model that was never deployed is found: the first prediction deploys it.
"""

from collections.abc import Sequence
from typing import Any

from opensearch_ml_stream.connectors.errors import NotFound
from opensearch_ml_stream.extensions.v2.service.local_models import repositories
from opensearch_ml_stream.plugin.connector_protocol import ConnectorProtocol
from opensearch_ml_stream.plugin.refreshing_cache import RefreshingCache
from opensearch_ml_stream.plugin.registry.deployment_state_store import DeploymentStateStore, is_undeployed
from opensearch_ml_stream.plugin.registry.document_access import VisibleDocuments
from opensearch_ml_stream.plugin.registry.stored_documents import IS_REMOTE, Json
from opensearch_ml_stream.plugin.store import Document, Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller

FRESH_SECONDS = 1.0
MAX_NAMES = 10_000  # cached, with their versions, for each caller who may not see all models
MAX_VERSIONS = 100  # of one name that are listed

_WITHOUT_GROUP: Json = {"bool": {"must_not": [{"exists": {"field": "model_group_id"}}]}}
_MAX_ID_BYTES = 512  # OpenSearch's limit
_Key = tuple[str, str | None, Caller | None]


class ModelNames:
    """Finds models by name among those that the caller may see, and caches them for FRESH_SECONDS.

    Names that are not found are not cached. While the store is down, cached models still count.
    """

    def __init__(
        self,
        store: Store,
        visible: VisibleDocuments,
        states: DeploymentStateStore,
        protocols: Sequence[ConnectorProtocol] = (),
    ) -> None:
        self._store = store
        self._protocols = protocols
        self._visible = visible
        self._states = states
        self._found = RefreshingCache[_Key, str](FRESH_SECONDS, float("inf"), MAX_NAMES)

    async def model_id(self, caller: Caller, name: str, version: str | None) -> str:
        """Return the id of a model that can be called.

        NotFound, as MLServer words it, if there is none, it was undeployed, or the caller may not see it.
        """
        key = (name, version, None if self._visible.shows_all(caller, Index.MODEL) else caller)
        found = self._found.fresh(key) or await self._found.get(key, lambda: self._look_up(caller, name, version))
        if self._is_unloaded(found):
            self.forget(found)
            raise model_not_found(name, version)
        return found

    def forget(self, model_id: str) -> None:
        """Drop a model from the cache, since it was deleted or undeployed."""
        self._found.forget(lambda _, found: found == model_id)

    async def ids(self, caller: Caller, name: str) -> list[str]:
        """Return the ids of all versions of a name, undeployed or not, the newest first; NotFound if there is none."""
        return [model_id for model_id, _ in await self._candidates(caller, name, None)]

    async def versions(self, caller: Caller, name: str) -> list[str]:
        """Return the versions of a name, the newest first, at most MAX_VERSIONS."""
        hits = await self._versions(caller, name, [], MAX_VERSIONS)
        versions = [version_of(hit["_source"]) for hit in hits]
        return list(dict.fromkeys(version for version in versions if version is not None))

    async def _look_up(self, caller: Caller, name: str, version: str | None) -> str:
        for model_id, source in await self._candidates(caller, name, version):
            is_unloaded = self._is_unloaded(model_id)
            if is_unloaded is None:
                is_unloaded = is_undeployed(await self._states.view(model_id, source))
            if not is_unloaded:
                return model_id
        raise model_not_found(name, version)

    def _is_unloaded(self, model_id: str) -> bool | None:
        """Return whether its repository says that a model is unloaded; None for a model without a repository."""
        states = (repository.is_unloaded(model_id) for repository in repositories(self._protocols))
        return next((is_unloaded for is_unloaded in states if is_unloaded is not None), None)

    async def _candidates(self, caller: Caller, name: str, version: str | None) -> list[tuple[str, Json]]:
        """Return the models that a name, or id, and version may mean, and their sources, the newest first."""
        versions = [] if version is None else [version, version.removeprefix("v")]
        by_id = await self._store.get(Index.MODEL, name) if 0 < len(name.encode()) <= _MAX_ID_BYTES else None
        if by_id is not None:
            if version is None or version_of(by_id.source) in versions:
                return [(name, by_id.source)]
            raise model_not_found(name, version)
        if version is not None and (own := await self._own(name, version)) is not None:
            return [(own.id, own.source)]
        of_version: list[Json] = [{"terms": {"model_version": versions}}] if versions else []
        hits = await self._versions(caller, name, of_version, MAX_VERSIONS)
        if not hits:
            raise model_not_found(name, version)
        hits.sort(key=lambda hit: (hit["_source"].get("created_time") or 0, hit["_seq_no"]), reverse=True)
        return [(hit["_id"], hit["_source"]) for hit in hits]

    async def _own(self, name: str, version: str) -> Document | None:
        """Return the model that has the version as its own."""
        for repository in repositories(self._protocols):
            if (found := await self._store.get(Index.MODEL, repository.model_id(name, version))) is not None:
                return found
        return None

    async def _versions(self, caller: Caller, name: str, filters: list[Json], size: int) -> list[dict[str, Any]]:
        """Return the models of a name, the newest first: those of the first group that had it."""
        named: Json = {"term": {"name.keyword": name}}
        first = await self._search(caller, [named], 1, "asc")
        if not first:
            return []
        group = first[0]["_source"].get("model_group_id")
        in_group: Json = {"term": {"model_group_id": group}} if group else _WITHOUT_GROUP
        return await self._search(caller, [named, in_group, *filters], size, "desc")

    async def _search(self, caller: Caller, filters: list[Json], size: int, order: str) -> list[dict[str, Any]]:
        visible = await self._visible.query(caller, Index.MODEL)
        query: Json = {"bool": {"filter": [IS_REMOTE, *filters, *([] if visible is None else [visible])]}}
        fields = ["created_time", "model_version", "model_group_id", "model_state"]
        body = {"query": query, "size": size, "sort": [{"created_time": order}], "_source": fields}
        hits: list[dict[str, Any]] = (await self._store.search(Index.MODEL, body))["hits"]["hits"]
        return hits


def model_not_found(name: str, version: str | None) -> NotFound:
    """Return the error in MLServer's words."""
    return NotFound(f"Model {name} not found" if version is None else f"Model {name} with version {version} not found")


def version_of(model: Json) -> str | None:
    """Return the version of a stored model."""
    version = model.get("model_version")
    return None if version is None else str(version)
