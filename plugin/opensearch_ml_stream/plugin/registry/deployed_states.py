"""Whether a model is deployed, and where that is written down.

Alone on a store, the state stands in the model's document. Beside a real ML Commons it must not: its sync-up job
turns every model that none of its own nodes holds into DEPLOY_FAILED. There the state stands in an index of ours
and is laid over the documents on their way out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import Conflict, NotFound
from opensearch_ml_stream.plugin.registry.node_id import node_id
from opensearch_ml_stream.plugin.registry.stored_documents import MAX_FOUND, Clock, Json, rewrite
from opensearch_ml_stream.plugin.store import Document, Index, Store

DEPLOYED = "DEPLOYED"
UNDEPLOYED = "UNDEPLOYED"

_IN_SERVICE = frozenset({DEPLOYED, "PARTIALLY_DEPLOYED", "LOADED", "PARTIALLY_LOADED"})
_ON_THE_WAY = frozenset({"DEPLOYING", "LOADING"})


def is_deployed(source: Json) -> bool:
    return source.get("model_state") in _IN_SERVICE


def is_deploying(source: Json) -> bool:
    return source.get("model_state") in _ON_THE_WAY


@dataclass(frozen=True, slots=True)
class DeployedStates:
    store: Store
    clock: Clock

    async def view(self, model_id: str, source: Json) -> Json:
        """The model's source with its state as this service sees it."""
        if not await self.store.has_ml_commons():
            return source
        own = await self.store.get(Index.DEPLOYMENT, model_id)
        return source if own is None else _laid_over(source, own.source)

    async def view_all(self, sources: Mapping[str, Json]) -> Mapping[str, Json]:
        """The same for sources by model id."""
        if not sources or not await self.store.has_ml_commons():
            return sources
        found: dict[str, Json] = {}
        ids = list(sources)
        for start in range(0, len(ids), MAX_FOUND):
            query = {"query": {"ids": {"values": ids[start : start + MAX_FOUND]}}, "size": MAX_FOUND}
            response = await self.store.search(Index.DEPLOYMENT, query)
            found |= {hit["_id"]: hit["_source"] for hit in response["hits"]["hits"]}
        return {id: _laid_over(source, found[id]) if id in found else source for id, source in sources.items()}

    async def deploy(self, model_id: str) -> str:
        """Writes down that the model is deployed; returns this service's node id. NotFound without the model."""
        node = await node_id(self.store, self.clock)
        now = self.clock()
        state: dict[str, Any] = {
            "model_state": DEPLOYED,
            "last_updated_time": now,
            "last_deployed_time": now,
            "auto_redeploy_retry_times": 0,
            "planning_worker_node_count": 1,
            "current_worker_node_count": 1,
            "planning_worker_nodes": [node],
            "deploy_to_all_nodes": True,
        }
        await self._write(model_id, state)
        return node

    async def undeploy(self, model_id: str, source: Json) -> bool:
        """Writes down that the model is not deployed; whether it was. `source` is the stored one."""
        ours = await self.store.has_ml_commons()
        own = await self.store.get(Index.DEPLOYMENT, model_id) if ours else None
        was = is_deployed(own.source if own else {}) if ours else is_deployed(source)
        if was or not ours:
            state: dict[str, Any] = {
                "model_state": UNDEPLOYED,
                "last_updated_time": self.clock(),
                "model_id": model_id,
                "auto_redeploy_retry_times": 0,
                "planning_worker_node_count": 0,
                "current_worker_node_count": 0,
                "planning_worker_nodes": [],
                "deploy_to_all_nodes": True,
            }
            await self._write(model_id, state)
        return was

    async def forget(self, model_id: str) -> None:
        """The model is gone."""
        if await self.store.has_ml_commons():
            await self.store.delete(Index.DEPLOYMENT, model_id)

    async def _write(self, model_id: str, state: Json) -> None:
        ours = await self.store.has_ml_commons()
        index = Index.DEPLOYMENT if ours else Index.MODEL
        if ours:
            try:
                await self.store.create(index, state, model_id)
                return
            except Conflict:
                pass  # it has been deployed before

        def change(document: Document) -> Json:
            return {**document.source, **state}

        await rewrite(self.store, index, model_id, change, NotFound("Failed to find model"))


def _laid_over(source: Json, own: Json) -> Json:
    """Unless ML Commons itself holds the model: then its word stands."""
    if is_deployed(source) and not is_deployed(own):
        return source
    times = [time for each in (source, own) if (time := each.get("last_updated_time")) is not None]
    return {**source, **own, **({"last_updated_time": max(times)} if times else {})}
