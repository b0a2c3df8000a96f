"""Opens the client for providers, with the HTTP proxies that the environment names."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.request import getproxies_environment

from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.upstream import Upstream
from opensearch_ml_stream.plugin.upstream.addresses import Resolver
from opensearch_ml_stream.plugin.upstream.clients.native_client import NativeUpstream
from opensearch_ml_stream.plugin.upstream.tls import TLSContexts


@asynccontextmanager
async def open_upstream(live_settings: LiveSettings) -> AsyncIterator[Upstream]:
    """Open an Upstream; its idle connections are closed with the context.

    HTTP_PROXY, HTTPS_PROXY and NO_PROXY are read once, here.
    """
    resolver = Resolver()
    upstream = NativeUpstream(live_settings, resolver, TLSContexts(), getproxies_environment())
    try:
        yield upstream
    finally:
        upstream.close()
        resolver.close()
