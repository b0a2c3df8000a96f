"""Delete the deployed states of models that are gone: ML Commons deletes a model, and knows nothing of the state."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.plugin.background_task import running_beside
from opensearch_ml_stream.plugin.registry.deployment_state_store import deployed_ids
from opensearch_ml_stream.plugin.registry.stored_documents import MAX_FOUND, Json
from opensearch_ml_stream.plugin.store import Index, Store

SWEEP_SECONDS = 600.0

log = logging.getLogger(__name__)


async def sweep_orphans(store: Store) -> int:
    """Delete the states whose model does not exist; return how many.

    A state is written after its model, and read before it here: that of a new model is no orphan.
    """
    states = await deployed_ids(store)
    orphans = set(states)
    for start in range(0, len(states), MAX_FOUND):
        page = states[start : start + MAX_FOUND]
        query: Json = {"query": {"ids": {"values": page}}, "size": MAX_FOUND, "_source": False}
        orphans.difference_update(hit["_id"] for hit in (await store.search(Index.MODEL, query))["hits"]["hits"])
    for id in orphans:
        await store.delete(Index.DEPLOYMENT, id)
    return len(orphans)


@asynccontextmanager
async def sweeping_orphans(store: Store, interval: float = SWEEP_SECONDS) -> AsyncIterator[None]:
    """Sweep every `interval` seconds while the block runs, in a cluster; in the embedded store nothing is left over."""
    if store.cluster is None:
        yield
        return
    async with running_beside(_sweep_again_and_again(store, interval)):
        yield


async def _sweep_again_and_again(store: Store, interval: float) -> None:
    while True:
        await asyncio.sleep(interval)
        try:
            if count := await sweep_orphans(store):
                log.info("Deleted %d deployed states of models that no longer exist", count)
        except MLStreamError as error:
            log.warning("Deployed states of deleted models stay for now: %s", error.reason)
