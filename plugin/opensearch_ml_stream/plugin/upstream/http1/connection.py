"""A connection to a provider, and the making of one."""

import asyncio
import ssl
from collections.abc import Callable
from typing import cast

from opensearch_ml_stream.plugin.upstream import network_errors
from opensearch_ml_stream.plugin.upstream.target import Target


class Connection(asyncio.Protocol):
    """The transport's protocol while no exchange is: whatever happens then makes the connection useless."""

    __slots__ = ("address", "idle_since", "on_unusable", "transport")

    def __init__(self, address: str) -> None:
        self.address = address
        self.idle_since = 0.0
        self.on_unusable: Callable[[Connection], None] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        # Bytes that nobody asked for: they would be taken for the next response.
        self.abort()

    def eof_received(self) -> bool:
        self._tell()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._tell()

    def abort(self) -> None:
        """Closes the socket now; nothing that waits to be sent goes out any more."""
        self._tell()
        if self.transport is not None:
            self.transport.abort()

    def _tell(self) -> None:
        if self.on_unusable is not None:
            self.on_unusable(self)


async def connect(
    addresses: tuple[str, ...], target: Target, context: ssl.SSLContext | None, seconds: float
) -> Connection:
    """A connection to the first address that answers. UpstreamError, also when `seconds` are over.

    The addresses are tried one after the other, each with its share of the time that is left, so that a network
    without a way to the first (IPv6, often) does not eat it all.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    failure = network_errors.connect_timed_out(target.authority, seconds)
    for count, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
        connection = Connection(address)
        try:
            async with asyncio.timeout((deadline - loop.time()) / count):
                await _open(connection, address, target, context)
            return connection
        except TimeoutError:
            connection.abort()
        except OSError as error:
            connection.abort()
            failure = network_errors.unreachable(target.authority, error)
        except BaseException:
            connection.abort()
            raise
    raise failure


async def _open(connection: Connection, address: str, target: Target, context: ssl.SSLContext | None) -> None:
    loop = asyncio.get_running_loop()
    if context is None:
        await loop.create_connection(lambda: connection, address, target.port)
    else:
        # The name, not the address, is what the certificate must be for.
        await loop.create_connection(lambda: connection, address, target.port, ssl=context, server_hostname=target.host)
