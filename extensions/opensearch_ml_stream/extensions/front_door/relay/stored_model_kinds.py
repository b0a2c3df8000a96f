"""Where the models of the store run: those that are not remote run in ML Commons on the cluster.

What a model is stays as long as there is the model, so that it is asked once. What there is not is asked again.
"""

from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import Any

from opensearch_ml_stream.plugin.refreshing_cache import RefreshingCache
from opensearch_ml_stream.plugin.store import Index, Store

_SEARCHED = 1000  # ids in one search
_MAX_MODELS = 10_000  # of a worker; an id has 20 characters


class StoredModelKinds:
    """Whether models are local, by what is stored of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_local = RefreshingCache[str, bool](inf, inf, _MAX_MODELS)

    def known(self, model_id: str) -> bool | None:
        """Whether the model is not a remote one; None if the store has not been asked about it."""
        return self._is_local.held(model_id)

    async def local_among(self, model_ids: Collection[str]) -> frozenset[str]:
        """Return the ids of those models that are stored and not remote; Unavailable if the store does not respond."""
        local = {model_id for model_id in model_ids if self._is_local.held(model_id)}
        for model_id, source in await self._stored([id for id in model_ids if id not in self._is_local]):
            is_local = source.get("algorithm", "REMOTE") != "REMOTE"
            self._is_local.put(model_id, is_local)
            if is_local:
                local.add(model_id)
        return frozenset(local)

    async def _stored(self, model_ids: Sequence[str]) -> list[tuple[str, Mapping[str, Any]]]:
        if len(model_ids) == 1:  # found as soon as it is stored, whoever stored it
            document = await self._store.get(Index.MODEL, model_ids[0])
            return [] if document is None else [(document.id, document.source)]
        hits = []
        for start in range(0, len(model_ids), _SEARCHED):
            query = {"ids": {"values": model_ids[start : start + _SEARCHED]}}
            body = {"query": query, "size": _SEARCHED, "_source": ["algorithm"]}
            hits += (await self._store.search(Index.MODEL, body))["hits"]["hits"]
        return [(hit["_id"], hit["_source"]) for hit in hits]
