"""The client for providers: Upstream on HTTP/1.1, with a connection pool, `max_connection` and HTTP proxies."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import TracebackType
from urllib.request import getproxies_environment

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.upstream import ReadTimedOut, Upstream, UpstreamResponse, network_errors
from opensearch_ml_stream.plugin.upstream.addresses import Resolver
from opensearch_ml_stream.plugin.upstream.http1.bodies import Body, MalformedBody
from opensearch_ml_stream.plugin.upstream.http1.connection import Connection, OpenAt, connect, open_tcp
from opensearch_ml_stream.plugin.upstream.http1.connection_limiter import ConnectionLimiter
from opensearch_ml_stream.plugin.upstream.http1.content_coding import decoded
from opensearch_ml_stream.plugin.upstream.http1.exchange import Exchange
from opensearch_ml_stream.plugin.upstream.http1.pool import ConnectionPool, Route
from opensearch_ml_stream.plugin.upstream.http1.prepared_requests import PreparedRequest, PreparedRequests
from opensearch_ml_stream.plugin.upstream.http1.tls_connections import TLSConnector
from opensearch_ml_stream.plugin.upstream.proxies import Proxy
from opensearch_ml_stream.plugin.upstream.target import Target
from opensearch_ml_stream.plugin.upstream.tls_contexts import TLSContexts

DRAIN_SECONDS = 0.05
DRAIN_BYTES = 1024  # a response that sends more than this is not at its end, and it is paid for: it is closed


class BodyDrain(asyncio.Protocol):
    r"""Keep a connection for the last bytes of a response whose reader has finished early.

    It is the protocol of the transport until the body ends, or for DRAIN_SECONDS or DRAIN_BYTES at most. A decoder
    knows from `[DONE]` that a stream is over, before the body's own end (`0\r\n\r\n`) has been received. Waiting for
    that would delay the caller, closing would cost the next request a new connection.

    `on_end` is called once, with whether the connection can be reused.
    """

    __slots__ = ("_body", "_on_end", "_remaining", "_timer", "_transport")

    def __init__(self, transport: asyncio.Transport, body: Body, on_end: Callable[[bool], None]) -> None:
        self._transport = transport
        self._body = body
        self._on_end: Callable[[bool], None] | None = on_end
        self._remaining = DRAIN_BYTES
        self._timer = asyncio.get_running_loop().call_later(DRAIN_SECONDS, self.end)
        transport.set_protocol(self)

    def data_received(self, data: bytes) -> None:
        """Drop bytes of the body; end with the body, or when it has too many."""
        try:
            self._remaining -= len(self._body.feed(data))
        except MalformedBody:
            self.end()
            return
        if self._body.done or self._remaining < 0:
            self.end()

    def eof_received(self) -> bool:
        """End, and let the transport close itself."""
        self.end()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """End."""
        self.end()

    def end(self) -> None:
        """Wait no longer; whether the connection can be reused is as far as has been received."""
        if self._on_end is None:
            return
        on_end, self._on_end = self._on_end, None
        self._timer.cancel()
        body = self._body
        on_end(body.done and not body.excess and not self._transport.is_closing())


# A reused connection that is closed this soon after a request was sent, before a byte was received, was closed by the
# provider as idle while the request was on its way: the request was not processed, and is sent once more. Later than
# this the provider may have been at work on it, and a prompt is not paid for twice.
STALE_SECONDS = 1.0


class HTTPUpstream:
    """An Upstream that reuses connections by connector, host and TLS. `proxies` as for `proxy_for`, none by default."""

    def __init__(
        self, live: LiveSettings, resolver: Resolver, contexts: TLSContexts, proxies: Mapping[str, str] | None = None
    ) -> None:
        self.pool = ConnectionPool()
        self.draining: dict[AbstractAsyncContextManager[UpstreamResponse], BodyDrain] = {}  # by their calls
        self.limiter = ConnectionLimiter()
        self._resolver = resolver
        self._contexts = contexts
        self._tls_connector = TLSConnector()
        self._live = live
        self.prepared = PreparedRequests(live, proxies or {})

    def open(
        self, request: ProviderRequest, config: ClientConfig, tls: Mapping[str, str], pool_key: str = ""
    ) -> AbstractAsyncContextManager[UpstreamResponse]:
        """See Upstream.open."""
        call = self.prepared.get(request, config, tls, pool_key)
        return _Call(self, call, call.request_bytes(request.body))

    async def connect(self, target: Target, route: Route, seconds: float) -> Connection:
        """Open a connection to an address that the route's policy allows, within `seconds` after the look-up.

        InvalidRequest if it forbids one of the host's addresses, UpstreamError if no connection can be opened.
        """
        authority = target.authority
        if (proxy := route.proxy) is None:
            addresses = await self._resolver.resolve(route.host)
            route.policy.check(route.host, addresses)
            open_at: OpenAt = partial(open_tcp, target.port)
        else:
            await self._check_behind_proxy(route)
            addresses = await self._resolver.resolve(proxy.host)  # which may have any address
            authority += f" by the HTTP proxy {proxy.authority}"
            is_tunnel = route.scheme == "https"
            open_at = partial(open_tunnel, proxy, target) if is_tunnel else partial(open_tcp, proxy.port)
        if route.scheme == "https":
            context = await self._contexts.get(route.tls)
            open_at = partial(self._tls_connector.open, context, target.host, open_at)
        return await connect(addresses, authority, open_at, seconds)

    async def _check_behind_proxy(self, route: Route) -> None:
        """Raise InvalidRequest if a host has an address that the policy forbids, as far as this machine knows.

        The proxy looks the host up itself. A name that only it can resolve cannot be checked here: a setting allows it.
        """
        route.policy.check_name(route.host)
        try:
            addresses = await self._resolver.resolve(route.host)
        except UpstreamError:
            if self._live.current.proxy_resolves_names:
                return
            raise InvalidRequest(
                f"The address of {route.host} is not known here and cannot be checked before an HTTP proxy connects to "
                "it. Where only the proxy can resolve names, set opensearch_ml_stream.proxy_resolves_names: true"
            ) from None
        route.policy.check(route.host, addresses)

    def close(self) -> None:
        """Close idle connections, and those that wait for the end of a body; those in use end with their calls."""
        self.pool.close()
        for drain in tuple(self.draining.values()):
            drain.end()


class _Call(AbstractAsyncContextManager[UpstreamResponse]):
    """One call: whatever happens inside, connection and limiter are released exactly once.

    Its connection goes to the pool if the response is whole and the provider keeps it open. It is drained if the caller
    has what it wanted (`[DONE]`), but not the body's last bytes. Else, as after an error or a cancellation, it is
    aborted, so that the provider stops its work.
    """

    __slots__ = ("_call", "_connection", "_data", "_exchange", "_upstream")

    def __init__(self, upstream: HTTPUpstream, call: PreparedRequest, data: bytes) -> None:
        self._upstream = upstream
        self._call = call
        self._data = data
        self._connection: Connection | None = None
        self._exchange: Exchange | None = None

    async def __aenter__(self) -> UpstreamResponse:
        data, self._data = self._data, b""  # a prompt may be large, and its response long
        upstream, call = self._upstream, self._call
        pool_key, config = call.route.pool_key, call.config
        if not upstream.limiter.try_acquire(pool_key, config.max_connection):
            await upstream.limiter.acquire(pool_key, config.max_connection, config.connection_timeout)
        try:
            connection = upstream.pool.take(call.route)
            if connection is None or (exchange := await self._start_on_idle(connection, data)) is None:
                connection = await upstream.connect(call.target, call.route, config.connection_timeout)
                exchange = self._begin(connection)
                await exchange.start(data)
            return decoded(exchange, call.target.authority) if "content-encoding" in exchange.headers else exchange
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
        elif kind is None and (body := exchange.unfinished_body) is not None:
            self._upstream.draining[self] = BodyDrain(connection.transport, body, self._end_drain)
        else:
            self._close()

    def _begin(self, connection: Connection) -> Exchange:
        call = self._call
        self._connection = connection
        self._exchange = Exchange(connection, call.target.authority, call.config.read_timeout)
        return self._exchange

    async def _start_on_idle(self, connection: Connection, data: bytes) -> Exchange | None:
        """Start on an idle connection; None if the provider had closed it unnoticed."""
        exchange = self._begin(connection)
        try:
            await exchange.start(data)
        except ReadTimedOut:
            raise  # the provider may well be at work
        except UpstreamError:
            if exchange.bytes_received or exchange.silent_seconds > STALE_SECONDS:
                raise
            exchange.abort()
            return None
        return exchange

    def _end_drain(self, reusable: bool) -> None:
        del self._upstream.draining[self]
        self._release(reusable)

    def _release(self, reusable: bool) -> None:
        if not reusable or self._connection is None:
            self._close()
            return
        self._upstream.pool.put(self._call.route, self._connection)
        self._release_limiter()

    def _close(self) -> None:
        if self._exchange is not None:
            self._exchange.abort()
        elif self._connection is not None:
            self._connection.abort()
        self._release_limiter()

    def _release_limiter(self) -> None:
        call = self._call
        self._upstream.limiter.release(call.route.pool_key, call.config.max_connection)


async def open_tunnel(proxy: Proxy, target: Target, connection: Connection, address: str) -> None:
    """Connect to an address of a proxy, and have it connect to the target.

    OSError if the proxy cannot be reached, UpstreamError if it does not open the tunnel.
    """
    await open_tcp(proxy.port, connection, address)
    exchange = Exchange(connection, proxy.authority, method="CONNECT")
    login = f"Proxy-Authorization: {proxy.authorization}\r\n" if proxy.authorization else ""
    exchange.begin(f"CONNECT {target.authority} HTTP/1.1\r\nHost: {target.authority}\r\n{login}\r\n".encode())
    while (head := await exchange.next_head()).status < 200:
        pass
    if head.status >= 300:
        raise network_errors.no_tunnel(proxy.authority, target.authority, head.status)
    assert connection.transport is not None
    connection.transport.set_protocol(connection)


@asynccontextmanager
async def open_upstream(live_settings: LiveSettings) -> AsyncIterator[Upstream]:
    """Open an Upstream; its idle connections are closed with the context.

    HTTP_PROXY, HTTPS_PROXY and NO_PROXY are read once, here.
    """
    resolver = Resolver()
    upstream = HTTPUpstream(live_settings, resolver, TLSContexts(), getproxies_environment())
    try:
        yield upstream
    finally:
        upstream.close()
        resolver.close()
