"""Which models run in the cluster, by what is stored of them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from opensearch_ml_stream.extensions.front_door.relay import stored_model_kinds
from opensearch_ml_stream.extensions.front_door.relay.stored_model_kinds import StoredModelKinds
from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore

STORED = {"kmeans": {"algorithm": "KMEANS"}, "remote": {"algorithm": "REMOTE"}, "old": {"name": "without one"}}


class CountingStore(SQLiteStore):
    """A store in memory that counts what it is asked."""

    reads = searches = 0

    async def get(self, index: Index, id: str) -> Document | None:
        """Return the document."""
        self.reads += 1
        return await super().get(index, id)

    async def search(self, index: Index, body: Any) -> dict[str, Any]:
        """Search."""
        self.searches += 1
        return await super().search(index, body)


@pytest.fixture
async def store() -> AsyncIterator[CountingStore]:
    store = CountingStore(":memory:")
    for id, source in STORED.items():
        await store.create(Index.MODEL, source, id)
    yield store
    await store.close()


@pytest.mark.parametrize(("id", "is_local"), [("kmeans", True), ("remote", False), ("old", False)])
async def test_the_store_is_asked_once_about_a_model(store: CountingStore, id: str, is_local: bool) -> None:
    kinds = StoredModelKinds(store)
    assert kinds.known(id) is None
    for _ in range(3):
        assert (await kinds.local_among([id]) == {id}) is is_local
        assert kinds.known(id) is is_local
    assert (store.reads, store.searches) == (1, 0)


async def test_a_model_that_is_not_stored_is_looked_for_again(store: CountingStore) -> None:
    kinds = StoredModelKinds(store)
    assert await kinds.local_among(["new"]) == frozenset()
    assert kinds.known("new") is None
    await store.create(Index.MODEL, {"algorithm": "KMEANS"}, "new")
    assert await kinds.local_among(["new"]) == {"new"}


async def test_many_models_are_asked_about_together(store: CountingStore) -> None:
    kinds = StoredModelKinds(store)
    ids = {"kmeans", "remote", "old", *(f"absent-{number}" for number in range(2000))}
    assert await kinds.local_among(ids) == {"kmeans"}
    assert (store.reads, store.searches) == (0, 3)
    assert await kinds.local_among(["kmeans", "remote"]) == {"kmeans"}
    assert store.searches == 3


async def test_no_more_models_are_held_than_fit(store: CountingStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_model_kinds, "_MAX_MODELS", 2)
    kinds = StoredModelKinds(store)
    for id in STORED:
        await kinds.local_among([id])
    assert [kinds.known(id) for id in STORED] == [None, False, False]
