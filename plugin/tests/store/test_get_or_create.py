"""Documents that are created at their first use, by one of several workers."""

from collections.abc import AsyncIterator, Mapping
from itertools import count
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Conflict, Unavailable
from opensearch_ml_stream.plugin.store import Document, Index, Written, get_or_create
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore


class LateStore(SQLiteStore):
    """Another makes the document first, and it can only be read after so many reads."""

    late_reads = 0

    async def get(self, index: Index, id: str) -> Document | None:
        """Return the document, unless it is too early."""
        self.late_reads -= 1
        return None if self.late_reads >= 0 else await super().get(index, id)

    async def create(self, index: Index, source: Mapping[str, Any], id: str | None = None) -> Written:
        """Create it, if the other has not."""
        if self.late_reads > 0:
            raise Conflict("document already exists")
        return await super().create(index, source, id)


@pytest.fixture
async def store() -> AsyncIterator[LateStore]:
    store = LateStore(":memory:")
    yield store
    await store.close()


async def test_the_first_one_counts(store: LateStore) -> None:
    made = count(1)
    first = await get_or_create(store, Index.CONFIG, "x", lambda: {"number": next(made)})
    assert first == await get_or_create(store, Index.CONFIG, "x", lambda: {"number": next(made)})
    assert first.source == {"number": 1}


async def test_one_that_cannot_be_read_yet_is_waited_for(store: LateStore) -> None:
    await store.put(Index.CONFIG, "x", {"number": 7})
    store.late_reads = 3
    assert (await get_or_create(store, Index.CONFIG, "x", dict[str, Any])).source == {"number": 7}


async def test_one_that_can_be_neither_read_nor_made_is_an_error(store: LateStore) -> None:
    store.late_reads = 1000
    with pytest.raises(Unavailable, match=r"^Document x of index \.plugins-ml-config can be neither read nor created"):
        await get_or_create(store, Index.CONFIG, "x", dict[str, Any])
