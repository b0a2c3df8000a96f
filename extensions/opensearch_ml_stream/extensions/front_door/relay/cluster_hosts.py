"""The hosts of the cluster: whose turn it is, which are left out for a while, and the idle connections to each."""

import asyncio
import logging
import ssl
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.extensions.front_door.relay.cluster_connection import ClusterConnection

CONNECT_SECONDS = 5.0
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
IDLE_SECONDS = 60.0
MAX_IDLE = 256  # connections of one host

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Host:
    """A host. `authority` is its host:port, `left_out_until` seconds of the loop's clock, `idle` the last used last."""

    name: str
    port: int
    authority: str
    failures: int = 0
    left_out_until: float = 0.0
    idle: list[ClusterConnection] = field(default_factory=list)


class ClusterHosts:
    """Connections to a cluster's hosts in turn.

    A host that fails before it has sent a byte is left out for a second, twice as long each time that it fails again.
    When all are left out they are tried nevertheless: nothing is lost by it. `tls` None for http.
    """

    def __init__(self, addresses: Collection[tuple[str, int]], tls: ssl.SSLContext | None) -> None:
        self._hosts = [Host(name, port, _authority(name, port)) for name, port in addresses]
        self._tls = tls
        self._turn = 0
        self._loop = asyncio.get_running_loop()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    async def connection(self, tried: Collection[Host]) -> tuple[Host, ClusterConnection]:
        """Return an idle or a new connection to the next host that was not tried yet.

        Unavailable if none of those can be connected to.
        """
        for host in self._in_turn():
            if host in tried:
                continue
            while host.idle:
                connection = host.idle.pop()
                if not connection.transport.is_closing():
                    return host, connection
            try:
                return host, await self._connect(host)
            except (OSError, TimeoutError) as error:
                self.failed(host, _why(error))
        raise Unavailable(self._no_host())

    def responded(self, host: Host) -> None:
        """Note that a host has sent a response: it is not left out any more."""
        if host.failures:
            log.info("OpenSearch's host %s responds again", host.authority)
            host.failures = 0
            host.left_out_until = 0.0

    def failed(self, host: Host, why: str) -> None:
        """Leave out a host that could not be reached, or broke off before it sent a byte, and its idle connections."""
        if host.failures == 0:
            log.warning("OpenSearch's host %s is left out for a while: %s", host.authority, why)
        pause = min(FIRST_PAUSE_SECONDS * 2 ** min(host.failures, 10), LONGEST_PAUSE_SECONDS)
        host.failures += 1
        host.left_out_until = self._loop.time() + pause
        self._close(host, lambda _: True)

    def release(self, host: Host, connection: ClusterConnection) -> None:
        """Keep a connection for the next request if it can serve one, else close it."""
        if self._closed or not connection.reusable or len(host.idle) == MAX_IDLE:
            connection.fail("it is not needed any more")
            return
        connection.is_idle = True
        connection.idle_since = self._loop.time()
        host.idle.append(connection)
        if self._sweep is None:
            self._sweep = self._loop.call_later(IDLE_SECONDS, self._close_expired)

    def close(self) -> None:
        """Close the idle connections, and every one that is released from now on."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for host in self._hosts:
            self._close(host, lambda _: True)

    def _in_turn(self) -> list[Host]:
        """Return all hosts, from whose turn it is on; those that are left out come last, the next to be back first."""
        hosts = self._hosts
        if len(hosts) == 1:
            return hosts
        self._turn = (self._turn + 1) % len(hosts)
        now = self._loop.time()
        in_turn = hosts[self._turn :] + hosts[: self._turn]
        return sorted(in_turn, key=lambda host: max(host.left_out_until, now))

    async def _connect(self, host: Host) -> ClusterConnection:
        name = None if self._tls is None else host.name
        async with asyncio.timeout(CONNECT_SECONDS):
            _, connection = await self._loop.create_connection(
                ClusterConnection, host.name, host.port, ssl=self._tls, server_hostname=name
            )
        return connection

    def _no_host(self) -> str:
        names = ", ".join(host.authority for host in self._hosts[:5])
        which = f"No host of the cluster can be reached ({names})" if len(self._hosts) > 1 else f"{names} is not there"
        return (
            f"{which}: OpenSearch did not take the connection. Check that it runs, and the host, port and TLS options "
            "in the store's URL"
        )

    def _close_expired(self) -> None:
        oldest = self._loop.time() - IDLE_SECONDS
        for host in self._hosts:
            self._close(host, lambda connection: connection.idle_since <= oldest)
        any_idle = any(host.idle for host in self._hosts)
        self._sweep = self._loop.call_later(IDLE_SECONDS / 2, self._close_expired) if any_idle else None

    def _close(self, host: Host, chosen: Callable[[ClusterConnection], bool]) -> None:
        for connection in host.idle:
            if chosen(connection) or connection.transport.is_closing():
                connection.fail("it was idle for long")
        host.idle = [connection for connection in host.idle if not connection.transport.is_closing()]


def _authority(name: str, port: int) -> str:
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def _why(error: OSError) -> str:
    """Return what the system says about a connection that could not be opened."""
    if isinstance(error, TimeoutError):
        return f"no connection within {CONNECT_SECONDS:g} s"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    return error.strerror or type(error).__name__
