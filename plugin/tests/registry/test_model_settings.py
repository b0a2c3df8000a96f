"""The `_sidecar` settings of models: stored beside the model, shown in it, changed member by member."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.registry.cleanup import delete_orphans
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.registry.registry_setup import add_connector, add_model, stored

LIMITS = {"max_streams": 5}
SETTINGS = {"limits": LIMITS, "fallback_model_ids": ["other"]}


async def test_settings_are_registered_and_shown_but_are_not_in_ml_commons_document(
    store: Store, registry: Registry
) -> None:
    model_id = await add_model(registry, _sidecar=SETTINGS)
    assert (await registry.models.get(ANYONE, model_id))["_sidecar"] == SETTINGS
    assert "_sidecar" not in (await stored(store, Index.MODEL, model_id)).source
    assert "_sidecar" not in (await registry.models.get(ANYONE, await add_model(registry, name="without")))


async def test_members_are_replaced_one_by_one_and_null_removes_one(registry: Registry) -> None:
    model_id = await add_model(registry, _sidecar=SETTINGS)
    await registry.models.update(ANYONE, model_id, {"_sidecar": {"limits": {"max_streams_per_user": 1}}})
    assert (await registry.models.get(ANYONE, model_id))["_sidecar"] == {
        "limits": {"max_streams_per_user": 1},
        "fallback_model_ids": ["other"],
    }
    await registry.models.update(ANYONE, model_id, {"_sidecar": {"fallback_model_ids": None}})
    await registry.models.update(ANYONE, model_id, {"description": "other settings stay"})
    assert (await registry.models.get(ANYONE, model_id))["_sidecar"] == {"limits": {"max_streams_per_user": 1}}


async def test_null_removes_all_settings(store: Store, registry: Registry) -> None:
    model_id = await add_model(registry, _sidecar=SETTINGS)
    await registry.models.update(ANYONE, model_id, {"_sidecar": None})
    assert "_sidecar" not in await registry.models.get(ANYONE, model_id)
    assert await store.get(Index.MODEL_SETTINGS, model_id) is None


async def test_wrong_settings_change_nothing(store: Store, registry: Registry) -> None:
    model_id = await add_model(registry)
    for wrong in ({"limits": {"max_streams": 0}}, {"fallback_model_ids": [model_id]}, "x"):
        with pytest.raises(InvalidRequest, match="_sidecar"):
            await registry.models.update(ANYONE, model_id, {"description": "new", "_sidecar": wrong})
    assert "description" not in await registry.models.get(ANYONE, model_id)
    before = (await store.search(Index.MODEL, {}))["hits"]["total"]
    connector_id = await add_connector(registry)
    with pytest.raises(InvalidRequest, match="_sidecar has no member"):
        await registry.models.register(
            ANYONE, {"name": "n", "function_name": "remote", "connector_id": connector_id, "_sidecar": {"limit": 1}}
        )
    assert (await store.search(Index.MODEL, {}))["hits"]["total"] == before


async def test_settings_go_with_their_model(store: Store, registry: Registry) -> None:
    deleted, gone, kept = [await add_model(registry, name=name, _sidecar=SETTINGS) for name in ("a", "b", "c")]
    await registry.models.delete(ANYONE, deleted)
    assert await store.get(Index.MODEL_SETTINGS, deleted) is None
    await store.delete(Index.MODEL, gone)  # by ML Commons, which does not know of settings
    assert await delete_orphans(store) == 1
    assert await store.get(Index.MODEL_SETTINGS, gone) is None
    assert await store.get(Index.MODEL_SETTINGS, kept) is not None


BATCHING = {"batching": {"max_docs": 8, "max_wait_ms": 5}}
EMBEDDING = {
    "action_type": "predict",
    "method": "POST",
    "url": "https://api.openai.com/v1/embeddings",
    "request_body": '{ "input": ${parameters.input} }',
    "pre_process_function": "connector.pre_process.openai.embedding",
    "post_process_function": "connector.post_process.openai.embedding",
}


async def test_batching_where_no_texts_are_sent_as_a_list_is_warned_of(registry: Registry) -> None:
    connector_id = await add_connector(registry)
    body: dict[str, Any] = {"name": "n", "function_name": "remote", "connector_id": connector_id}
    registered = await registry.models.register(ANYONE, {**body, "_sidecar": BATCHING})
    [warning] = registered["warnings"]
    assert warning.startswith("[_sidecar.batching] has no effect")
    plain = await registry.models.register(ANYONE, {**body, "name": "plain"})
    assert "warnings" not in plain
    assert (await registry.models.update(ANYONE, plain["model_id"], {"_sidecar": BATCHING}))["warnings"] == [warning]
    connector_id = await add_connector(registry, actions=[EMBEDDING])
    body = {"name": "e", "function_name": "remote", "connector_id": connector_id, "_sidecar": BATCHING}
    assert "warnings" not in await registry.models.register(ANYONE, body)
