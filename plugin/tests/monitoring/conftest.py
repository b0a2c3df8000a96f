"""A server's monitoring over an empty store in memory."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.monitoring.monitoring_setup import Monitored, monitored


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Monitored]:
    async with monitored(tmp_path) as opened:
        yield opened
