"""A store for tests of settings that change at run time."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.store import Store
from opensearch_ml_stream.plugin.store.open_store import open_store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(f"sqlite:///{tmp_path / 'store.db'}", "") as opened:
        yield opened
