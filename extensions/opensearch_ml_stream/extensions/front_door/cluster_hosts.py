"""The hosts of the cluster: their order, those skipped after failures, and the idle connections to each."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.plugin.upstream.addresses import Resolver
from opensearch_ml_stream.plugin.upstream.http1.connection import Connection, OpenAt, connect, open_tcp
from opensearch_ml_stream.plugin.upstream.http1.exchange import Exchange
from opensearch_ml_stream.plugin.upstream.http1.pool import ConnectionPool
from opensearch_ml_stream.plugin.upstream.http1.tls_connections import TLSConnector
from opensearch_ml_stream.plugin.upstream.network_errors import BrokenConnection
from opensearch_ml_stream.plugin.upstream.target import Target

CONNECT_SECONDS = 5.0
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
IDLE_SECONDS = 60.0
MAX_IDLE = 256  # connections of one host
# TCP keep-alive detects a vanished host after 2 minutes; nothing else ends a response that never comes.
_KEEP_ALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Host:
    """A host. `authority` is its host:port, `left_out_until` seconds of the loop's clock."""

    target: Target
    authority: str
    failures: int = 0
    left_out_until: float = 0.0


@dataclass(slots=True)
class HostConnection:
    """A connection to a host for one exchange; `is_reused` if there was another on it before."""

    host: Host
    connection: Connection
    is_reused: bool

    def exchange(self, method: str) -> Exchange:
        """Return the exchange of a request of that method, which has not begun."""
        return Exchange(self.connection, self.host.authority, method=method)


class ClusterHosts:
    """Connections to a cluster's hosts in turn.

    A host that fails before it has sent a byte is skipped for a second, twice as long after each further failure. If
    all are skipped, all are tried. `tls` is None for http.
    """

    def __init__(self, addresses: Collection[tuple[str, int]], tls: ssl.SSLContext | None) -> None:
        self._hosts = [_host(name, port) for name, port in addresses]
        self._tls = tls
        self._tls_connector = TLSConnector()
        self._resolver = Resolver()
        self._idle = ConnectionPool(IDLE_SECONDS, MAX_IDLE)
        self._turn = 0
        self._loop = asyncio.get_running_loop()

    async def connection(self, tried: Collection[Host]) -> HostConnection:
        """Return an idle or a new connection to the next host that was not tried yet.

        Unavailable if none of those can be connected to.
        """
        for host in self._in_turn():
            if host in tried:
                continue
            if (idle := self._idle.take(host)) is not None:
                return HostConnection(host, idle, True)
            try:
                return HostConnection(host, await self._connect(host.target), False)
            except BrokenConnection as error:
                self.failed(host, error.problem)
        raise Unavailable(self._no_host())

    def responded(self, host: Host) -> None:
        """Note that a host has sent a response: it is no longer skipped."""
        if host.failures:
            log.info("OpenSearch's host %s responds again", host.authority)
            host.failures = 0
            host.left_out_until = 0.0

    def failed(self, host: Host, why: str) -> None:
        """Skip a host that could not be reached, or broke off before it sent a byte, and close its idle connections."""
        if host.failures == 0:
            log.warning("OpenSearch's host %s is left out for a while: %s", host.authority, why)
        pause = min(FIRST_PAUSE_SECONDS * 2 ** min(host.failures, 10), LONGEST_PAUSE_SECONDS)
        host.failures += 1
        host.left_out_until = self._loop.time() + pause
        self._idle.close_idle(host)

    def release(self, used: HostConnection, reusable: bool) -> None:
        """Keep a connection for the next request if it can serve one, else close it."""
        if reusable:
            self._idle.put(used.host, used.connection)
        else:
            used.connection.abort()

    def close(self) -> None:
        """Close the idle connections, and every one that is released from now on."""
        self._idle.close()
        self._resolver.close()

    def _in_turn(self) -> list[Host]:
        """Return all hosts in round-robin order; skipped ones last, by the time at which they return."""
        hosts = self._hosts
        if len(hosts) == 1:
            return hosts
        self._turn = (self._turn + 1) % len(hosts)
        now = self._loop.time()
        in_turn = hosts[self._turn :] + hosts[: self._turn]
        return sorted(in_turn, key=lambda host: max(host.left_out_until, now))

    async def _connect(self, target: Target) -> Connection:
        addresses = await self._resolver.resolve(target.host)
        open_at: OpenAt = partial(open_tcp, target.port)
        if self._tls is not None:
            open_at = partial(self._tls_connector.open, self._tls, target.host, open_at)
        connection = await connect(addresses, target.authority, open_at, CONNECT_SECONDS)
        _watch(connection)
        return connection

    def _no_host(self) -> str:
        names = ", ".join(host.authority for host in self._hosts[:5])
        which = f"No host of the cluster can be reached ({names})" if len(self._hosts) > 1 else f"{names} is not there"
        return (
            f"{which}: OpenSearch did not take the connection. Check that it runs, and the host, port and TLS options "
            "in the store's URL"
        )


def _host(name: str, port: int) -> Host:
    authority = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    return Host(Target("", name, port, authority, authority, ""), authority)


def _watch(connection: Connection) -> None:
    """Turn TCP keep-alive on, which detects a host that is gone."""
    peer = None if connection.transport is None else connection.transport.get_extra_info("socket")
    if peer is None:
        return
    with suppress(OSError):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE:
            if hasattr(socket, name):
                peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
