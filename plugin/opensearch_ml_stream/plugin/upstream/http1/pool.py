"""ConnectionPool: idle connections, kept for the next request on the same route."""

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass, field
from math import inf

from opensearch_ml_stream.plugin.upstream.addresses import AddressPolicy
from opensearch_ml_stream.plugin.upstream.http1.connection import Connection
from opensearch_ml_stream.plugin.upstream.proxies import Proxy
from opensearch_ml_stream.plugin.upstream.tls_contexts import TLSKey

IDLE_SECONDS = 30.0  # servers close theirs after 5 (uvicorn, node) to 75 (nginx) seconds


@dataclass(frozen=True, slots=True)
class Route:
    """What two requests must share to use one connection.

    `policy` is the address policy under which the connection was allowed. It is compared, not hashed: there are two
    at a time at most.
    """

    pool_key: str
    scheme: str
    host: str
    port: int
    tls: TLSKey
    policy: AddressPolicy = field(hash=False)
    proxy: Proxy | None = None


class ConnectionPool:
    """Idle connections by route; the last used is taken first. It does not know the connections in use.

    An idle connection is closed `idle_seconds` after its last use, or up to half as long again later. A route whose
    connections are all in use is known until then too. Of one route `most` are kept. A Route is what providers'
    requests must share; any other value that is compared by what counts will do.
    """

    def __init__(self, idle_seconds: float = IDLE_SECONDS, most: float = inf) -> None:
        self._idle: dict[Hashable, list[Connection]] = {}
        self._idle_seconds = idle_seconds
        self._most = most
        self._closed = False
        self._sweep: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return sum(len(connections) for connections in self._idle.values())

    def take(self, route: Hashable) -> Connection | None:
        """Remove and return an idle connection of the route that is not closing, or None."""
        connections = self._idle.get(route)
        while connections:
            connection = connections.pop()
            connection.on_unusable = None
            if connection.transport is not None and not connection.transport.is_closing():
                return connection
        return None

    def put(self, route: Hashable, connection: Connection) -> None:
        """Add an idle connection, which is removed when the provider closes it or sends bytes, or when it expires."""
        connections = self._idle.get(route)
        if connections is None:
            connections = self._idle[route] = []
        if self._closed or len(connections) >= self._most:
            connection.abort()
            return
        loop = connection.loop
        connection.idle_since = loop.time()
        connection.on_unusable = lambda unusable: self._remove(route, unusable)
        if connection.transport is not None:
            connection.transport.set_protocol(connection)
        connections.append(connection)
        if self._sweep is None:
            self._sweep = loop.call_later(self._idle_seconds, self._close_expired)

    def close(self) -> None:
        """Close all idle connections, and every one that is put from now on."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        for route in tuple(self._idle):
            self.close_idle(route)

    def close_idle(self, route: Hashable) -> None:
        """Close the idle connections of a route."""
        for connection in self._idle.pop(route, ()):
            connection.abort()

    def _remove(self, route: Hashable, connection: Connection) -> None:
        connection.on_unusable = None
        connections = self._idle.get(route)
        if connections is not None and connection in connections:
            connections.remove(connection)

    def _close_expired(self) -> None:
        self._sweep = None
        loop = asyncio.get_running_loop()
        expired = loop.time() - self._idle_seconds
        for connections in list(self._idle.values()):
            for connection in tuple(connections):
                if connection.idle_since <= expired:
                    connection.abort()
        self._idle = {route: connections for route, connections in self._idle.items() if connections}
        if self._idle:
            self._sweep = loop.call_later(self._idle_seconds / 2, self._close_expired)
