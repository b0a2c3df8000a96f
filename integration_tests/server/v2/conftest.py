"""One sidecar of two workers for the tests of `/v2`: heartbeats and the wait for a first event are short."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from integration_tests.support.sidecars import Sidecar, running_sidecar


@pytest.fixture(scope="session")
def v2_sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    settings = {
        "opensearch_ml_stream.heartbeat_seconds": "0.3",
        "opensearch_ml_stream.first_event_wait_seconds": "0.5",
    }
    arguments = ("--workers", "2")
    with running_sidecar(tmp_path_factory.mktemp("v2"), settings=settings, arguments=arguments) as running:
        yield running


@pytest.fixture
async def client(v2_sidecar: Sidecar) -> AsyncIterator[httpx.AsyncClient]:
    """A client that makes a connection for each request, so that the kernel spreads them over the workers."""
    headers = {"Connection": "close"}
    async with httpx.AsyncClient(base_url=v2_sidecar.url, timeout=20, headers=headers) as opened:
        yield opened
