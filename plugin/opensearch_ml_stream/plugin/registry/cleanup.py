"""Delete states and settings of models that no longer exist: ML Commons deletes models without knowing of either."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.registry.deployment_state_store import deployed_ids
from opensearch_ml_stream.plugin.registry.stored_documents import MAX_FOUND, Json
from opensearch_ml_stream.plugin.store import Index, Store

SWEEP_SECONDS = 600.0
MAX_SETTINGS = 10_000  # looked at in one sweep, as a search returns no more

log = logging.getLogger(__name__)


async def delete_orphans(store: Store) -> int:
    """Delete the states and settings whose model does not exist; return how many.

    Both are written after their model, and read before it here, so that those of a new model are kept.
    """
    with_settings = (await store.search(Index.MODEL_SETTINGS, {"size": MAX_SETTINGS, "_source": False}))["hits"]["hits"]
    return await _delete_without_model(store, Index.DEPLOYMENT, await deployed_ids(store)) + (
        await _delete_without_model(store, Index.MODEL_SETTINGS, [hit["_id"] for hit in with_settings])
    )


async def _delete_without_model(store: Store, index: Index, ids: list[str]) -> int:
    orphans = set(ids)
    for start in range(0, len(ids), MAX_FOUND):
        page = ids[start : start + MAX_FOUND]
        query: Json = {"query": {"ids": {"values": page}}, "size": MAX_FOUND, "_source": False}
        orphans.difference_update(hit["_id"] for hit in (await store.search(Index.MODEL, query))["hits"]["hits"])
    for id in orphans:
        await store.delete(index, id)
    return len(orphans)


@asynccontextmanager
async def deleting_orphans(
    store: Store, background: BackgroundTasks, interval: float = SWEEP_SECONDS
) -> AsyncIterator[None]:
    """Delete orphans every `interval` seconds while the block runs; an embedded store has none."""
    if store.cluster is None:
        yield
        return

    async def sweep() -> float:
        try:
            if count := await delete_orphans(store):
                log.info("Deleted %d deployed states and settings of models that no longer exist", count)
        except MLStreamError as error:
            log.warning("Deployed states and settings of deleted models cannot be removed now: %s", error.reason)
        return interval

    async with background.running("orphans", sweep, after=interval):
        yield
