"""Models by name, version and id: which one is meant, for whom, and how soon a change is in force."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import NotFound, Unavailable
from opensearch_ml_stream.extensions.v2.service.model_names import ModelNames
from opensearch_ml_stream.plugin import refreshing_cache
from opensearch_ml_stream.plugin.registry.deployment_state_store import DeploymentStateStore
from opensearch_ml_stream.plugin.registry.document_access import VisibleDocuments
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.predictions.prediction_setup import Clock

ANN, BOB = Caller("ann"), Caller("bob")


class WatchedStore(SQLiteStore):
    """Counts searches of models; may be down."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.searches = 0
        self.down = False

    async def get(self, index: Index, id: str) -> Document | None:
        if self.down:
            raise Unavailable("down")
        return await super().get(index, id)

    async def search(self, index: Index, body: Any) -> dict[str, Any]:
        self.searches += index is Index.MODEL
        return await super().search(index, body)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(refreshing_cache, "monotonic", clock)
    monkeypatch.setattr(refreshing_cache, "PATIENCE_SECONDS", 30)
    return clock


@pytest.fixture
async def store() -> AsyncIterator[WatchedStore]:
    store = WatchedStore()
    yield store
    await store.close()


@pytest.fixture
def live() -> LiveSettings:
    return LiveSettings(Settings())


@pytest.fixture
def names(store: WatchedStore, live: LiveSettings, clock: Clock) -> ModelNames:
    return ModelNames(store, VisibleDocuments.of(store, live), DeploymentStateStore(store, lambda: 0))


async def add(store: WatchedStore, id: str, name: str = "m", **fields: Any) -> None:
    source = {"name": name, "algorithm": "REMOTE", "model_version": "1", "created_time": 1, **fields}
    await store.create(Index.MODEL, source, id)


async def test_the_newest_model_of_a_name_counts_unless_a_version_is_said(
    names: ModelNames, store: WatchedStore
) -> None:
    await add(store, "b", model_version="2", created_time=20)
    await add(store, "a", model_version="1", created_time=10)
    await add(store, "c", "other", created_time=30)
    assert await names.model_id(ANYONE, "m", None) == "b"
    assert await names.model_id(ANYONE, "m", "1") == await names.model_id(ANYONE, "m", "v1") == "a"
    assert await names.versions(ANYONE, "m") == ["2", "1"]
    with pytest.raises(NotFound, match=r"^Model m with version 3 not found$"):
        await names.model_id(ANYONE, "m", "3")


async def test_of_models_made_in_the_same_millisecond_the_one_written_last_counts(
    names: ModelNames, store: WatchedStore
) -> None:
    for id in ("b", "c", "a"):
        await add(store, id)
    assert await names.model_id(ANYONE, "m", None) == "a"


async def test_an_id_means_its_model_whatever_others_are_called(names: ModelNames, store: WatchedStore) -> None:
    await add(store, "id-1")
    await add(store, "id-2", "id-1", created_time=99)
    assert await names.model_id(ANYONE, "id-1", None) == await names.model_id(ANYONE, "id-1", "v1") == "id-1"
    with pytest.raises(NotFound, match=r"^Model id-1 with version 2 not found$"):
        await names.model_id(ANYONE, "id-1", "2")


async def test_only_remote_models_are_found_by_name(names: ModelNames, store: WatchedStore) -> None:
    await add(store, "a", algorithm="TEXT_EMBEDDING")
    for name in ("m", "", "x" * 600, "m*"):
        with pytest.raises(NotFound):
            await names.model_id(ANYONE, name, None)


async def test_a_name_is_looked_up_once_a_second(names: ModelNames, store: WatchedStore, clock: Clock) -> None:
    await add(store, "a")
    found = await asyncio.gather(*[names.model_id(ANYONE, "m", None) for _ in range(20)])
    assert (set(found), store.searches) == ({"a"}, 2)
    await add(store, "b", created_time=2)
    assert await names.model_id(ANYONE, "m", None) == "a"
    clock.pass_freshness()
    assert await names.model_id(ANYONE, "m", None) == "b"
    assert store.searches == 4


async def test_what_is_not_found_is_looked_up_again(names: ModelNames, store: WatchedStore, clock: Clock) -> None:
    with pytest.raises(NotFound):
        await names.model_id(ANYONE, "m", None)
    await add(store, "a")
    assert await names.model_id(ANYONE, "m", None) == "a"
    names.forget("a")
    await store.delete(Index.MODEL, "a")
    with pytest.raises(NotFound):
        await names.model_id(ANYONE, "m", None)


async def test_while_the_store_is_down_what_was_found_before_counts(
    names: ModelNames, store: WatchedStore, clock: Clock
) -> None:
    await add(store, "a")
    await names.model_id(ANYONE, "m", None)
    store.down = True
    for _ in range(2):
        clock.pass_freshness()
        assert await names.model_id(ANYONE, "m", None) == "a"
    with pytest.raises(Unavailable):
        await names.model_id(ANYONE, "n", None)


async def test_nobody_takes_a_name_over_by_a_model_of_the_same_name_in_another_group(
    names: ModelNames, store: WatchedStore, clock: Clock
) -> None:
    await add(store, "a", model_group_id="first", created_time=10)
    await add(store, "b", model_group_id="other", created_time=20, model_version="2")
    assert await names.model_id(ANYONE, "m", None) == await names.model_id(ANYONE, "m", "1") == "a"
    assert await names.versions(ANYONE, "m") == ["1"]
    with pytest.raises(NotFound):
        await names.model_id(ANYONE, "m", "2")
    await add(store, "c", model_group_id="first", created_time=30, model_version="2")
    clock.pass_freshness()
    assert await names.model_id(ANYONE, "m", None) == "c"


async def test_a_caller_finds_the_models_that_they_may_see(
    names: ModelNames, store: WatchedStore, live: LiveSettings
) -> None:
    live.current = Settings(model_access_control_enabled=True)
    for owner in ("ann", "bob"):
        group: dict[str, Any] = {"name": owner, "access": "private", "owner": {"name": owner, "backend_roles": []}}
        await store.create(Index.MODEL_GROUP, group, f"group-{owner}")
    await add(store, "a", model_group_id="group-ann")
    await add(store, "b", model_group_id="group-bob", created_time=2, model_version="2")
    assert [await names.model_id(caller, "m", None) for caller in (ANN, BOB, ANN)] == ["a", "b", "a"]
    assert await names.model_id(Caller("root", is_admin=True), "m", None) == "a"
    assert await names.versions(ANN, "m") == ["1"]
    with pytest.raises(NotFound, match=r"^Model m with version 2 not found$"):
        await names.model_id(ANN, "m", "2")


async def test_a_tenant_finds_its_own_models(names: ModelNames, store: WatchedStore) -> None:
    await add(store, "a", tenant_id="one")
    await add(store, "b", tenant_id="two", created_time=2)
    assert await names.model_id(Caller("", is_admin=True, tenant_id="one"), "m", None) == "a"


async def test_the_names_that_are_remembered_are_bounded(
    names: ModelNames, store: WatchedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names._found, "_most", 2)
    for name in ("k", "l", "m"):
        await add(store, name, f"name-{name}")
        await names.model_id(ANYONE, f"name-{name}", None)
    searches = store.searches
    await names.model_id(ANYONE, "name-m", None)
    await names.model_id(ANYONE, "name-l", None)
    assert store.searches == searches
    await names.model_id(ANYONE, "name-k", None)
    assert store.searches > searches
