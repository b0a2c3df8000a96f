"""Every promise of the upstream holds on the loop of the standard library and on uvloop, which production runs on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
import uvloop

from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream import Upstream
from opensearch_ml_stream.plugin.upstream.http1.client import open_upstream


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    """The client, allowed to reach loopback."""
    async with open_upstream(LiveSettings(Settings(private_ip_enabled=True))) as opened:
        yield opened
