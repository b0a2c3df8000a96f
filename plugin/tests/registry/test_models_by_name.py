"""Models by id or name, as clients of conversations address them."""

from collections.abc import AsyncIterator

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound
from opensearch_ml_stream.plugin.registry.document_access import VisibleDocuments
from opensearch_ml_stream.plugin.registry.models_by_name import MAX_OF_ONE_NAME, ModelsByName
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller

TENANT = Caller("ann", tenant_id="t1")


@pytest.fixture
async def store() -> AsyncIterator[SQLiteStore]:
    store = SQLiteStore(":memory:")
    yield store
    await store.close()


@pytest.fixture
def names(store: SQLiteStore) -> ModelsByName:
    return ModelsByName(store, VisibleDocuments.of(store, LiveSettings(Settings())))


async def add(store: SQLiteStore, id: str, name: str, **fields: object) -> None:
    model = {"name": name, "algorithm": "REMOTE", "created_time": len(id), **fields}
    await store.create(Index.MODEL, model, id)


async def test_a_model_is_found_by_its_id_and_by_its_name(store: SQLiteStore, names: ModelsByName) -> None:
    await add(store, "m1", "org/gpt 4")
    assert [await names.model_id(ANYONE, name) for name in ("m1", "org/gpt 4")] == ["m1", "m1"]


async def test_an_id_counts_before_a_name(store: SQLiteStore, names: ModelsByName) -> None:
    await add(store, "m1", "m2")
    await add(store, "m2", "other")
    assert await names.model_id(ANYONE, "m2") == "m2"


async def test_the_error_of_a_name_of_several_models_lists_their_ids(store: SQLiteStore, names: ModelsByName) -> None:
    for number in range(MAX_OF_ONE_NAME + 2):
        await add(store, f"id{number}", "same")
    with pytest.raises(InvalidRequest, match=r"use the id of one as the model: id\d+, ") as raised:
        await names.model_id(ANYONE, "same")
    assert raised.value.reason.count("id") - raised.value.reason.count("the id") == MAX_OF_ONE_NAME


@pytest.mark.parametrize("name", ["", "none", "x" * 600, "half of a pair: \ud83d"])
async def test_a_name_of_no_model_is_not_found(names: ModelsByName, name: str) -> None:
    with pytest.raises(NotFound, match="lists them") as raised:
        await names.model_id(ANYONE, name)
    assert len(raised.value.reason) < 250


async def test_models_that_a_caller_may_not_see_are_neither_found_nor_listed(
    store: SQLiteStore, names: ModelsByName
) -> None:
    await add(store, "mine", "a", tenant_id="t1")
    await add(store, "theirs", "b", tenant_id="t2")
    assert [id for id, _ in await names.listed(TENANT)] == ["mine"]
    for name in ("theirs", "b"):
        assert await names.model_id(ANYONE, name) == "theirs"
        with pytest.raises(NotFound):
            await names.model_id(TENANT, name)


async def test_local_models_are_not_listed(store: SQLiteStore, names: ModelsByName) -> None:
    await add(store, "remote", "a", description="d")
    await add(store, "local", "b", algorithm="TEXT_EMBEDDING")
    assert await names.listed(ANYONE) == [("remote", {"name": "a", "created_time": 6, "description": "d"})]
