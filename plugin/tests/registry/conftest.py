"""An empty store in memory, and the registry over it."""

from collections.abc import AsyncIterator

import pytest

from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.store import Store
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from tests.registry.registry_setup import closing, registry_on


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with closing(SQLiteStore(":memory:")) as store:
        yield store


@pytest.fixture
def registry(store: Store) -> Registry:
    return registry_on(store)
