"""A playground over an empty store in memory."""

from collections.abc import AsyncIterator

import pytest

from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from tests.playground.service.playground_setup import Playground, playground_on


@pytest.fixture
async def playground() -> AsyncIterator[Playground]:
    async with playground_on(SQLiteStore(":memory:")) as opened:
        yield opened
