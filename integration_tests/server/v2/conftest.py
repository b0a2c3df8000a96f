from collections.abc import AsyncIterator

import httpx
import pytest
from integration_tests.support.sidecars import Sidecar


@pytest.fixture
async def client(two_workers: Sidecar) -> AsyncIterator[httpx.AsyncClient]:
    """A client that makes a connection for each request, so that the kernel spreads them over the workers."""
    headers = {"Connection": "close"}
    async with httpx.AsyncClient(base_url=two_workers.url, timeout=20, headers=headers) as opened:
        yield opened
