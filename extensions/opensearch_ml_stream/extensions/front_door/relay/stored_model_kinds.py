"""Where the models of the store run: those that are not remote run in ML Commons on the cluster.

What a model is stays as long as there is the model, so that it is asked once. What there is not is asked again.
"""

from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Any

from opensearch_ml_stream.plugin.store import Index, Store

_SEARCHED = 1000  # ids in one search
_MAX_REMEMBERED = 10_000  # models of a worker; an id has 20 characters


class StoredModelKinds:
    """Whether models are local, by what is stored of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_local: OrderedDict[str, bool] = OrderedDict()

    def known(self, model_id: str) -> bool | None:
        """Whether the model is not a remote one; None if the store has not been asked about it."""
        return self._is_local.get(model_id)

    async def local_among(self, model_ids: Collection[str]) -> frozenset[str]:
        """Return the ids of those models that are stored and not remote; Unavailable if the store does not respond."""
        unknown = [model_id for model_id in model_ids if model_id not in self._is_local]
        found = {model_id: self._is_local[model_id] for model_id in model_ids if model_id in self._is_local}
        if len(unknown) == 1:  # found as soon as it is stored, whoever stored it
            document = await self._store.get(Index.MODEL, unknown[0])
            found |= {} if document is None else self._remember(unknown[0], document.source)
        else:
            for start in range(0, len(unknown), _SEARCHED):
                query = {"ids": {"values": unknown[start : start + _SEARCHED]}}
                body = {"query": query, "size": _SEARCHED, "_source": ["algorithm"]}
                for hit in (await self._store.search(Index.MODEL, body))["hits"]["hits"]:
                    found |= self._remember(hit["_id"], hit["_source"])
        return frozenset(model_id for model_id, is_local in found.items() if is_local)

    def _remember(self, model_id: str, source: Mapping[str, Any]) -> dict[str, bool]:
        is_local = self._is_local[model_id] = source.get("algorithm", "REMOTE") != "REMOTE"
        if len(self._is_local) > _MAX_REMEMBERED:
            self._is_local.popitem(last=False)
        return {model_id: is_local}
