"""Connections to a provider: the TCP or TLS connection itself, and `connect`, which opens one."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from opensearch_ml_stream.plugin.upstream import network_errors

# Opens a connection to an address; the connection has its transport then. OSError if it cannot.
OpenAt = Callable[["Connection", str], Awaitable[None]]


class Connection(asyncio.Protocol):
    """A connection, and the protocol of its transport while no Exchange has it.

    Whatever the provider does on an idle connection makes it unusable: `on_unusable` is called then. `loop` is the one
    that it was opened in, kept because asking asyncio for it is a system call, which each request would make.
    """

    __slots__ = ("address", "idle_since", "loop", "on_unusable", "transport")

    def __init__(self, address: str) -> None:
        self.address = address
        self.idle_since = 0.0
        self.on_unusable: Callable[[Connection], None] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.loop = asyncio.get_running_loop()
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Abort the connection: bytes without a request would be taken for the next response."""
        self.abort()

    def eof_received(self) -> bool:
        """Report the connection as unusable, and let the transport close itself."""
        self._report_unusable()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Report the connection as unusable."""
        self._report_unusable()

    def abort(self) -> None:
        """Close the socket at once, without sending what is still in the write buffer."""
        self._report_unusable()
        if self.transport is not None:
            self.transport.abort()

    def _report_unusable(self) -> None:
        if self.on_unusable is not None:
            self.on_unusable(self)


async def connect(addresses: tuple[str, ...], authority: str, open_at: OpenAt, seconds: float) -> Connection:
    """Connect to the first address that accepts. UpstreamError if none does, also when `seconds` have passed.

    `authority` is the host and port for messages.

    The addresses are tried one after the other, each with its share of the time that remains, so that a network
    without a route to the first (IPv6, often) does not use up all of it.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    failure = network_errors.connect_timed_out(authority, seconds)
    for count, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
        connection = Connection(address)
        try:
            async with asyncio.timeout((deadline - loop.time()) / count):
                await open_at(connection, address)
            return connection
        except TimeoutError:
            connection.abort()
        except OSError as error:
            connection.abort()
            failure = network_errors.unreachable(authority, error)
        except BaseException:
            connection.abort()
            raise
    raise failure


async def open_tcp(port: int, connection: Connection, address: str) -> None:
    """Connect to a port of an address. OSError if it cannot."""
    await asyncio.get_running_loop().create_connection(lambda: connection, address, port)
