"""Deployed states of models: where they are stored, and how they are shown.

In the embedded store the state is part of the model's document. In a cluster it must not be: a real ML Commons may run
there, or be installed later, and its sync-up job sets every model that none of its own nodes holds to DEPLOY_FAILED. In
a cluster, an index of our own (Index.DEPLOYMENT) holds what the sidecar has deployed, and is merged into a model's
source when that is shown. The state in the model's document is then left to ML Commons; only UNDEPLOYED is ever written
to it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import NotFound
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.parallel import wait_for_all
from opensearch_ml_stream.plugin.registry.node import node_id
from opensearch_ml_stream.plugin.registry.stored_documents import IS_REMOTE, MAX_FOUND, Json, rewrite
from opensearch_ml_stream.plugin.store import Document, Index, Store

DEPLOYED = "DEPLOYED"
UNDEPLOYED = "UNDEPLOYED"

MAX_DEPLOYED = 10_000  # in one answer: as far as a search goes

_DEPLOYED_STATES = frozenset({DEPLOYED, "PARTIALLY_DEPLOYED", "LOADED", "PARTIALLY_LOADED"})
_DEPLOYING_STATES = frozenset({"DEPLOYING", "LOADING"})


def is_deployed(source: Json) -> bool:
    """Whether the model's state is a deployed one, including ML Commons' older names."""
    return source.get("model_state") in _DEPLOYED_STATES


def is_undeployed(source: Json) -> bool:
    """Whether the model was undeployed, which differs from never having been deployed."""
    return source.get("model_state") in (UNDEPLOYED, "UNLOADED")


def is_deploying(source: Json) -> bool:
    """Whether ML Commons is deploying the model now; here deploying is one write."""
    return source.get("model_state") in _DEPLOYING_STATES


@dataclass(frozen=True, slots=True)
class DeploymentStateStore:
    """Reads and writes the deployed states of models."""

    store: Store
    clock: Clock

    async def view(self, model_id: str, source: Json) -> Json:
        """Return the model's source with the state that this sidecar shows."""
        if self.store.cluster is None:
            return source
        state = await self.store.get(Index.DEPLOYMENT, model_id)
        return source if state is None else _with_state(source, state.source)

    async def view_all(self, sources: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return sources by model id, each as `view` shows it."""
        if not sources or self.store.cluster is None:
            return sources
        states: dict[str, Json] = {}
        ids = list(sources)
        for start in range(0, len(ids), MAX_FOUND):
            query = {"query": {"ids": {"values": ids[start : start + MAX_FOUND]}}, "size": MAX_FOUND}
            response = await self.store.search(Index.DEPLOYMENT, query)
            states |= {hit["_id"]: hit["_source"] for hit in response["hits"]["hits"]}
        return {id: _with_state(source, states[id]) if id in states else source for id, source in sources.items()}

    async def deployed(self, model_ids: Sequence[str] | None = None) -> list[str]:
        """Return the ids of the remote models that are deployed, of all or of these; at most MAX_DEPLOYED."""
        is_deployed_here: Json = {"terms": {"model_state": sorted(_DEPLOYED_STATES)}}
        wanted: list[Json] = [] if model_ids is None else [{"ids": {"values": list(model_ids)}}]
        found = await self._ids(Index.MODEL, [IS_REMOTE, is_deployed_here, *wanted])
        if self.store.cluster is not None:
            own = await self._ids(Index.DEPLOYMENT, [is_deployed_here, *wanted])
            found += await self._ids(Index.MODEL, [IS_REMOTE, {"ids": {"values": own}}])
        return list(dict.fromkeys(found))

    async def prepare(self) -> str:
        """Make what `deploy` needs beside the model; return the node id."""
        if self.store.cluster is None:
            return await node_id(self.store, self.clock)
        preparing = asyncio.create_task(self.store.prepare(Index.DEPLOYMENT, Index.TASK))
        node = asyncio.create_task(node_id(self.store, self.clock))
        await wait_for_all(preparing, node)
        return node.result()

    async def deploy(self, model_id: str, node: str) -> None:
        """Store that the model is deployed, on the node that `prepare` returned. NotFound without the model.

        In a cluster nothing is read first: of several concurrent writes, any may be the last.
        """
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
        if self.store.cluster is None:
            await self._lay_over(model_id, state)
        else:
            await self.store.put(Index.DEPLOYMENT, model_id, state)

    async def undeploy(self, model_id: str, source: Json) -> bool:
        """Store that the model is not deployed; return whether it was. `source` is the model's stored one.

        A model that ML Commons on the cluster has deployed is undeployed by ML Commons.
        """
        was_deployed = is_deployed(source)
        own: Json = {}
        if (cluster := self.store.cluster) is not None:
            own = await self._take_own(model_id)
            if was_deployed and await cluster.undeploy(model_id):
                return True
            was_deployed = was_deployed or bool(own)
        state: dict[str, Any] = {
            **{name: own[name] for name in ("last_deployed_time",) if name in own},
            "model_state": UNDEPLOYED,
            "last_updated_time": self.clock(),
            "model_id": model_id,
            "auto_redeploy_retry_times": 0,
            "planning_worker_node_count": 0,
            "current_worker_node_count": 0,
            "planning_worker_nodes": [],
            "deploy_to_all_nodes": True,
        }
        await self._lay_over(model_id, state)
        return was_deployed

    async def put_undeployed(self, model_id: str, state: str) -> None:
        """Store DEPLOYING or DEPLOY_FAILED. NotFound without the model.

        In a cluster DEPLOYING is not stored, as it belongs to ML Commons.
        """
        if self.store.cluster is not None:
            if state in _DEPLOYING_STATES:
                return
            await self._take_own(model_id)
        await self._lay_over(model_id, {"model_state": state, "last_updated_time": self.clock()})

    async def _take_own(self, model_id: str) -> Json:
        """Delete the state in our own index, and return it; an empty object if there is none."""
        document = await self.store.get(Index.DEPLOYMENT, model_id)
        if document is None:
            return {}
        await self.store.delete(Index.DEPLOYMENT, model_id)
        return document.source

    async def forget(self, model_id: str) -> None:
        """Delete what is stored about a model that was deleted."""
        if self.store.cluster is not None:
            await self.store.delete(Index.DEPLOYMENT, model_id)

    async def _ids(self, index: Index, filters: Sequence[Json]) -> list[str]:
        body = {"query": {"bool": {"filter": filters}}, "size": MAX_DEPLOYED, "_source": False}
        return [hit["_id"] for hit in (await self.store.search(index, body))["hits"]["hits"]]

    async def _lay_over(self, model_id: str, state: Json) -> None:
        def change(document: Document) -> Json:
            return {**document.source, **state}

        await rewrite(self.store, Index.MODEL, model_id, change, NotFound("Failed to find model"))


async def deployed_ids(store: Store) -> list[str]:
    """Return the ids of the models that Index.DEPLOYMENT holds as deployed, at most MAX_DEPLOYED."""
    query: Json = {"query": {"term": {"model_state": DEPLOYED}}, "size": MAX_DEPLOYED, "_source": False}
    response = await store.search(Index.DEPLOYMENT, query)
    return [hit["_id"] for hit in response["hits"]["hits"]]


def _with_state(source: Json, state: Json) -> Json:
    """Return the source with our state merged in; `last_updated_time` is the later of the two."""
    times = [time for each in (source, state) if (time := each.get("last_updated_time")) is not None]
    return {**source, **state, **({"last_updated_time": max(times)} if times else {})}
