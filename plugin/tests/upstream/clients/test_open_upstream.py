"""The settings and the environment choose the client."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream import UpstreamResponse
from opensearch_ml_stream.plugin.upstream.clients.aiohttp_client import AiohttpUpstream
from opensearch_ml_stream.plugin.upstream.clients.native_client import NativeUpstream
from opensearch_ml_stream.plugin.upstream.clients.open_upstream import _ByProxy, open_upstream
from tests.upstream.scripted_upstream import CONFIG, RESPONSE, ScriptedUpstream, fetch


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("setting", "environment", "kind"),
    [
        ("native", {}, NativeUpstream),
        ("aiohttp", {}, AiohttpUpstream),
        ("native", {"HTTP_PROXY": "http://proxy:3128"}, _ByProxy),
        ("native", {"https_proxy": "http://proxy:3128"}, _ByProxy),
        ("native", {"NO_PROXY": "a"}, NativeUpstream),
        ("aiohttp", {"HTTP_PROXY": "http://proxy:3128"}, AiohttpUpstream),
    ],
)
async def test_the_client_is_the_settings_unless_there_is_a_proxy(
    monkeypatch: pytest.MonkeyPatch, setting: str, environment: Mapping[str, str], kind: type
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    async with open_upstream(LiveSettings(Settings(upstream=setting))) as upstream:
        assert type(upstream) is kind


async def test_the_upstream_is_closed_with_its_context() -> None:
    async with open_upstream(LiveSettings(Settings())) as upstream:
        assert isinstance(upstream, NativeUpstream)
        assert not upstream.pool._closed
    assert upstream.pool._closed


class FakeAiohttpUpstream:
    def __init__(self) -> None:
        self.urls: list[str] = []

    @asynccontextmanager
    async def open(
        self, request: ProviderRequest, config: ClientConfig, tls: Mapping[str, str], pool_key: str = ""
    ) -> AsyncIterator[UpstreamResponse]:
        self.urls.append(request.url)
        assert (config, tls, pool_key) == (CONFIG, {}, "connector")
        async with ScriptedUpstream([RESPONSE]).open(request, config, tls, pool_key) as response:
            yield response


async def test_only_what_goes_through_a_proxy_goes_through_aiohttp() -> None:
    native, aiohttp = ScriptedUpstream([RESPONSE], [RESPONSE]), FakeAiohttpUpstream()
    upstream = _ByProxy(native, aiohttp, {"http": "http://proxy:3128", "no": "inside.example"})
    urls = ["http://outside.example/", "https://outside.example/", "http://inside.example/"]
    for url in urls:
        assert await fetch(upstream, ProviderRequest("GET", url, {}, b"")) == b"ok"
    assert aiohttp.urls == urls[:1]
    assert [target.origins[0] + target.path for target, *_ in native.connects] == urls[1:]
    assert {route.pool_key for _, route, _ in native.connects} == {"connector"}
