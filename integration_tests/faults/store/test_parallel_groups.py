"""Writers of one model group's name at the same time, on every store and over clients of their own, as replicas are."""

import asyncio
from contextlib import AsyncExitStack

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.registry.document_access import VisibleDocuments
from opensearch_ml_stream.plugin.registry.model_groups import ModelGroups
from opensearch_ml_stream.plugin.security.access_control import GROUP_WORDING, AccessControl, AskedAccess
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.open_store import open_store
from opensearch_ml_stream.rest_handlers.callers import ANYONE

REPLICAS = 4


async def test_replicas_that_make_one_name_make_one_group(store_url: str, index_prefix: str) -> None:
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(open_store(store_url, index_prefix)) for _ in range(REPLICAS)]
        access = AccessControl(lambda: False, GROUP_WORDING)
        groups = [ModelGroups(store, now_millis, access, VisibleDocuments(store, access, access)) for store in stores]
        ids = await asyncio.gather(*[group.for_model(ANYONE, "shared", None, AskedAccess()) for group in groups])
        outcomes = await asyncio.gather(
            *[group.register(ANYONE, {"name": "own"}) for group in groups], return_exceptions=True
        )
        found = await stores[0].search(Index.MODEL_GROUP, {})
    assert len(set(ids)) == 1
    assert sum(isinstance(outcome, InvalidRequest) for outcome in outcomes) == REPLICAS - 1
    assert sorted(hit["_source"]["name"] for hit in found["hits"]["hits"]) == ["own", "shared"]
