"""One sidecar for all tests of `_predict/stream`: heartbeats and the wait for a first event are short."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from integration_tests.support.sidecars import Sidecar, running_sidecar


@pytest.fixture(scope="session")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    settings = {
        "opensearch_ml_stream.heartbeat_seconds": "0.3",
        "opensearch_ml_stream.first_event_wait_seconds": "0.5",
    }
    with running_sidecar(tmp_path_factory.mktemp("sidecar"), settings=settings) as running:
        yield running


@pytest.fixture
async def client(sidecar: Sidecar) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=sidecar.url, timeout=20) as opened:
        yield opened
