"""A worker's calls of the servers that engines ship, over HTTP on the loopback interface.

The process beside a server gives its address and key over a socket. Neither is in a document, so a user's connector to
the same address has no key.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from random import random
from types import TracebackType

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_urls import engine_target
from opensearch_ml_stream.extensions.runtimes.service import runtime_errors
from opensearch_ml_stream.extensions.runtimes.service.runtime_models import RuntimeModels
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream import UpstreamResponse
from opensearch_ml_stream.plugin.upstream.addresses import Resolver
from opensearch_ml_stream.plugin.upstream.http1.client import HTTPUpstream
from opensearch_ml_stream.plugin.upstream.tls_contexts import TLSContexts
from opensearch_ml_stream.runtimes.host.engine_socket import FAILED

TELL_SECONDS = 10.0  # for the process beside a server to give its address


@dataclass(slots=True)
class _Server:
    """An engine's server, and the connection that stays open for as long as it is called."""

    url: str
    key: str
    asked: asyncio.StreamWriter
    has_failed: bool = False

    def request(self, request: ProviderRequest, path: str) -> ProviderRequest:
        """Return the request to the server, with its key."""
        return replace(request, url=self.url + path, headers={**request.headers, "Authorization": f"Bearer {self.key}"})


class EngineCalls(AbstractAsyncContextManager["EngineCalls"]):
    """The calls of one worker; leaving it closes its connections.

    They have a client of their own, to which the settings for providers' addresses and proxies do not apply, and whose
    connections no user's connector gets.
    """

    def __init__(self, models: RuntimeModels, settings: Settings) -> None:
        self._models = models
        self._calls: Counter[str] = Counter()  # in flight, by the socket of the process
        self._resolver = Resolver()
        loopback = replace(
            settings,
            private_ip_enabled=True,
            trusted_connector_private_endpoints_regex=(),
            restricted_ip_patterns=(),
        )
        self._upstream = HTTPUpstream(LiveSettings(loopback), self._resolver, TLSContexts())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._upstream.close()
        self._resolver.close()

    @asynccontextmanager
    async def open(self, request: ProviderRequest, config: ClientConfig) -> AsyncIterator[UpstreamResponse]:
        """Call the model of an engine's URL, as `Upstream.open` calls a provider.

        NotFound if there is no such model, Unavailable while it is loading, UpstreamError if its server has ended.
        """
        name, path = engine_target(request.url)
        async with self._found(name, self._ready(name)) as server:
            try:
                async with self._upstream.open(server.request(request, path), config, {}, name) as response:
                    server.has_failed = response.status >= 500
                    yield response
            except UpstreamError:
                server.has_failed = True
                raise

    def _ready(self, name: str) -> list[str]:
        """Return the sockets of the callable processes, those with the fewest calls of this worker first."""
        ready = self._models.callable_sockets(name)
        return sorted(ready, key=lambda socket: (self._calls[socket], random()))

    @asynccontextmanager
    async def _found(self, name: str, sockets: Iterable[str]) -> AsyncIterator[_Server]:
        """Ask the processes in turn for their servers; the first that responds is called."""
        failure = OSError()
        for socket in sockets:
            try:
                server = await _ask(socket)
            except (OSError, ValueError, LookupError) as error:
                failure = error if isinstance(error, OSError) else OSError()
                continue
            self._calls[socket] += 1
            try:
                yield server
            finally:
                if server.has_failed:
                    server.asked.write(FAILED)
                server.asked.close()
                self._calls[socket] -= 1
                if not self._calls[socket]:
                    del self._calls[socket]
            return
        raise runtime_errors.unreachable(name, failure)


async def _ask(socket: str) -> _Server:
    reader, writer = await asyncio.open_unix_connection(socket)
    try:
        async with asyncio.timeout(TELL_SECONDS):
            server = json.loads(await reader.readline())
        return _Server(server["url"], server["key"], writer)
    except BaseException:
        writer.close()
        raise
