"""A TCP proxy that a test can cut, to be a server that dies and comes back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass(slots=True)
class TCPProxy:
    """Relays `127.0.0.1:port` to another port of this machine; refuses connections while it is cut."""

    target_port: int
    port: int = 0
    _server: asyncio.Server | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    async def restore(self) -> None:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Closes the port and drops every connection, as a killed server does."""
        if self._server is None:
            return
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await self._server.wait_closed()
        self._server = None

    async def drop_connections(self) -> None:
        """Drops every connection but goes on taking new ones, as a server that was restarted between two requests."""
        for writer in self._writers:
            writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        both = {writer, far_writer}
        self._writers |= both
        try:
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        finally:
            self._writers -= both
            for end in both:
                end.close()


@asynccontextmanager
async def tcp_proxy(target_port: int) -> AsyncIterator[TCPProxy]:
    proxy = TCPProxy(target_port)
    await proxy.restore()
    try:
        yield proxy
    finally:
        await proxy.cut()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
