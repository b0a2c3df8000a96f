"""Opens the Upstream that the settings and the environment's HTTP proxies call for."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from urllib.request import getproxies_environment

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.upstream import Upstream, UpstreamResponse
from opensearch_ml_stream.plugin.upstream.addresses import Resolver
from opensearch_ml_stream.plugin.upstream.clients.native_client import NativeUpstream
from opensearch_ml_stream.plugin.upstream.proxies import proxy_for
from opensearch_ml_stream.plugin.upstream.tls import TLSContexts


class _ByProxy:
    """The native client for hosts that are reached directly, aiohttp for those behind a proxy."""

    def __init__(self, native: NativeUpstream, aiohttp: Upstream, proxies: Mapping[str, str]) -> None:
        self._native = native
        self._aiohttp = aiohttp
        self._proxies = proxies

    def open(
        self, request: ProviderRequest, config: ClientConfig, tls: Mapping[str, str], pool_key: str = ""
    ) -> AbstractAsyncContextManager[UpstreamResponse]:
        """See Upstream.open."""
        if proxy_for(request.url, self._proxies) is None:
            return self._native.open(request, config, tls, pool_key)
        return self._aiohttp.open(request, config, tls, pool_key)


@asynccontextmanager
async def open_upstream(live_settings: LiveSettings) -> AsyncIterator[Upstream]:
    """Open an Upstream; its idle connections are closed with the context.

    HTTP_PROXY, HTTPS_PROXY and NO_PROXY are read once, here.
    """
    resolver = Resolver()
    contexts = TLSContexts()
    native = NativeUpstream(live_settings, resolver, contexts)
    proxies = getproxies_environment()
    try:
        by_aiohttp = live_settings.current.upstream == "aiohttp"
        if not by_aiohttp and "http" not in proxies and "https" not in proxies:
            yield native
            return
        # By name: aiohttp takes 10 MiB, which most servers do not need.
        client = import_module("opensearch_ml_stream.plugin.upstream.clients.aiohttp_client")
        async with client.open_aiohttp(live_settings, resolver, contexts, proxies) as aiohttp:
            yield aiohttp if by_aiohttp else _ByProxy(native, aiohttp, proxies)
    finally:
        native.close()
        resolver.close()
