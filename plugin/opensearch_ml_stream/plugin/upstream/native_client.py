"""Upstream on the HTTP/1.1 client of `http1`, with a connection pool and `max_connection`."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.rendering.action import ProviderRequest
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream import ReadTimedOut, UpstreamResponse
from opensearch_ml_stream.plugin.upstream.addresses import AddressPolicy, Resolver
from opensearch_ml_stream.plugin.upstream.connection_limiter import ConnectionLimiter
from opensearch_ml_stream.plugin.upstream.http1.connection import Connection, connect
from opensearch_ml_stream.plugin.upstream.http1.content_coding import decoded
from opensearch_ml_stream.plugin.upstream.http1.exchange import Exchange
from opensearch_ml_stream.plugin.upstream.http1.linger import Linger
from opensearch_ml_stream.plugin.upstream.http1.pool import ConnectionPool, Route
from opensearch_ml_stream.plugin.upstream.http1.request_bytes import request_bytes
from opensearch_ml_stream.plugin.upstream.secure.tls_connector import TLSConnector
from opensearch_ml_stream.plugin.upstream.target import Target, parse_target
from opensearch_ml_stream.plugin.upstream.tls import PLAIN, TLSContexts, tls_key

# A reused connection that is closed this soon after a request was sent, before a byte was received, was closed by the
# provider as idle while the request was on its way: the request was not processed, and is sent once more. Later than
# this the provider may have been at work on it, and a prompt is not paid for twice.
STALE_SECONDS = 1.0


class NativeUpstream:
    """An Upstream that reuses connections by connector, host and TLS."""

    def __init__(self, live: LiveSettings, resolver: Resolver, contexts: TLSContexts) -> None:
        self.pool = ConnectionPool()
        self.limiter = ConnectionLimiter()
        self._live = live
        self._resolver = resolver
        self._contexts = contexts
        self._tls_connector = TLSConnector()
        self._policy: tuple[Settings, AddressPolicy] = (live.current, AddressPolicy.of(live.current))

    def open(
        self, request: ProviderRequest, config: ClientConfig, tls: Mapping[str, str], pool_key: str = ""
    ) -> AbstractAsyncContextManager[UpstreamResponse]:
        """See Upstream.open."""
        target = parse_target(request.url)
        key = tls_key(config, tls) if target.scheme == "https" else PLAIN
        policy = self.policy()
        if policy.trusted_private:
            policy = policy.for_url(request.url)
        route = Route(pool_key, target.scheme, target.host, target.port, key, policy)
        return _Call(self, request, config, target, route)

    def policy(self) -> AddressPolicy:
        """Return the address policy of the current settings."""
        settings, policy = self._policy
        if settings is not self._live.current:
            policy = AddressPolicy.of(self._live.current)
            self._policy = (self._live.current, policy)
        return policy

    async def connect(self, target: Target, route: Route, seconds: float) -> Connection:
        """Open a connection to an address that the route's policy allows, within `seconds` after the look-up.

        InvalidRequest if it forbids one of the host's addresses, UpstreamError if no connection can be opened.
        """
        addresses = await self._resolver.resolve(route.host)
        route.policy.check(route.host, addresses)
        open_tls = None
        if route.scheme == "https":
            open_tls = partial(self._tls_connector.open, await self._contexts.get(route.tls))
        return await connect(addresses, target, open_tls, seconds)

    def close(self) -> None:
        """Close idle connections; those in use end with their calls."""
        self.pool.close()


class _Call(AbstractAsyncContextManager[UpstreamResponse]):
    """One call: whatever happens inside, connection and limiter are released exactly once."""

    __slots__ = ("_config", "_connection", "_data", "_exchange", "_route", "_target", "_upstream")

    def __init__(
        self, upstream: NativeUpstream, request: ProviderRequest, config: ClientConfig, target: Target, route: Route
    ) -> None:
        self._upstream = upstream
        self._data = request_bytes(request, target)
        self._config = config
        self._target = target
        self._route = route
        self._connection: Connection | None = None
        self._exchange: Exchange | None = None

    async def __aenter__(self) -> UpstreamResponse:
        data, self._data = self._data, b""  # a prompt may be large, and its response long
        config = self._config
        await self._upstream.limiter.acquire(self._route.pool_key, config.max_connection, config.connection_timeout)
        try:
            exchange = await self._start_on_idle(data) or await self._start(await self._connect(), data)
            return decoded(exchange, self._target.authority) if "content-encoding" in exchange.headers else exchange
        except BaseException:
            self._close()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        exchange, connection = self._exchange, self._connection
        if exchange is None or connection is None or connection.transport is None:
            self._close()
            return
        exchange.stop()
        if exchange.reusable:
            self._release(True)
        elif kind is None and (body := exchange.lingering_body) is not None:
            Linger(connection.transport, body, self._release)
        else:
            self._close()

    async def _connect(self) -> Connection:
        return await self._upstream.connect(self._target, self._route, self._config.connection_timeout)

    async def _start(self, connection: Connection, data: bytes) -> Exchange:
        assert connection.transport is not None
        self._connection = connection
        exchange = self._exchange = Exchange(connection.transport, self._target.authority, self._config.read_timeout)
        await exchange.start(data)
        return exchange

    async def _start_on_idle(self, data: bytes) -> Exchange | None:
        """Start on an idle connection; None if there is none, or if the provider had closed it unnoticed."""
        connection = self._upstream.pool.take(self._route)
        if connection is None:
            return None
        self._connection = connection
        started_at = asyncio.get_running_loop().time()
        try:
            return await self._start(connection, data)
        except ReadTimedOut:
            raise  # the provider may well be at work
        except UpstreamError:
            exchange = self._exchange
            late = asyncio.get_running_loop().time() - started_at > STALE_SECONDS
            if exchange is None or exchange.bytes_received or late:
                raise
            exchange.abort()
            return None

    def _release(self, reusable: bool) -> None:
        if not reusable or self._connection is None:
            self._close()
            return
        self._upstream.pool.put(self._route, self._connection)
        self._release_limiter()

    def _close(self) -> None:
        if self._exchange is not None:
            self._exchange.abort()
        elif self._connection is not None:
            self._connection.abort()
        self._release_limiter()

    def _release_limiter(self) -> None:
        self._upstream.limiter.release(self._route.pool_key, self._config.max_connection)
