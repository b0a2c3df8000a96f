"""Hosts of a cluster that do what a test says, and a front door to them on a port of our own server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from starlette.types import ASGIApp
from uvicorn.server import ServerState

from opensearch_ml_stream.extensions.front_door.cluster_requests import FrontDoor, open_door
from opensearch_ml_stream.plugin.server.http1.limits import ConnectionLimits
from opensearch_ml_stream.plugin.server.http1.protocol import SharedState, StreamingProtocol
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@dataclass(slots=True)
class Connection:
    """A host's end of a connection. `received` is all that came; `closed` when the other side has closed it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    received: bytearray = field(default_factory=bytearray)
    _unread: bytearray = field(default_factory=bytearray)

    async def head(self) -> bytes:
        """The head of the next request, up to its blank line."""
        while b"\r\n\r\n" not in self._unread:
            await self._more()
        end = self._unread.index(b"\r\n\r\n") + 4
        return self._take(end)

    async def body(self, size: int) -> bytes:
        """The next bytes."""
        while len(self._unread) < size:
            await self._more()
        return self._take(size)

    async def until(self, end: bytes) -> bytes:
        """All bytes up to these, with them."""
        while end not in self._unread:
            await self._more()
        return self._take(self._unread.index(end) + len(end))

    async def closed(self) -> None:
        """Wait until the other side has closed the connection."""
        with suppress(OSError, EOFError):
            while True:
                await self._more()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        self.writer.transport.abort()

    def _take(self, size: int) -> bytes:
        data = bytes(self._unread[:size])
        del self._unread[:size]
        return data

    async def _more(self) -> None:
        data = await self.reader.read(65536)
        if not data:
            raise EOFError
        self._unread += data
        self.received += data


Script = Callable[[Connection], Awaitable[None]]


async def respond_ok(connection: Connection) -> None:
    """Respond to every request without a body."""
    while True:
        await connection.head()
        await connection.send(OK)


@dataclass(slots=True)
class Host:
    """A host on `port` that plays its script on each connection; `connections` are all that came."""

    script: Script
    port: int = 0
    connections: list[Connection] = field(default_factory=list)
    _server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._play, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening, and close all connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in self.connections:
            connection.reset()

    async def _play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        self.connections.append(connection)
        with suppress(OSError, EOFError):
            await self.script(connection)


@asynccontextmanager
async def host(script: Script = respond_ok) -> AsyncIterator[Host]:
    running = Host(script)
    await running.start()
    try:
        yield running
    finally:
        await running.stop()


@dataclass(frozen=True, slots=True)
class Door:
    """A front door on a port; `state.connections` are those of its clients."""

    port: int
    app: FrontDoor
    state: ServerState
    clients: list[Connection] = field(default_factory=list)

    def look(self, seconds: float) -> None:
        """Let all connections see to what is overdue, as if so many seconds had passed."""
        now = asyncio.get_running_loop().time() + seconds
        for connection in tuple(self.state.connections):
            connection.check_deadlines(now)  # type: ignore[union-attr]

    async def connect(self) -> Connection:
        """A client, whose connection is dropped with the door at the latest."""
        client = Connection(*await asyncio.open_connection("127.0.0.1", self.port))
        self.clients.append(client)
        return client

    async def exchange(self, request: bytes) -> bytes:
        """All that comes back until the server closes; the request should say `Connection: close`."""
        client = await self.connect()
        await client.send(request)
        await client.closed()
        client.reset()
        return bytes(client.received)


@asynccontextmanager
async def door_to(*urls: str, limits: ConnectionLimits | None = None, **settings: object) -> AsyncIterator[Door]:
    """A front door to hosts at these URLs."""
    given = Settings(store=",".join(urls), **settings)  # type: ignore[arg-type]
    async with open_door(given) as app, serving(app, limits) as (port, state):
        door = Door(port, app, state)
        try:
            yield door
        finally:
            for client in door.clients:
                client.reset()


@asynccontextmanager
async def serving(app: ASGIApp, limits: ConnectionLimits | None = None) -> AsyncIterator[tuple[int, ServerState]]:
    """Our server with that application."""
    loop = asyncio.get_running_loop()
    state = ServerState()
    shared = SharedState(app, state, limits or ConnectionLimits(), BodyMemory(2**20, 2**28), lambda text: None)
    server = await loop.create_server(lambda: StreamingProtocol(shared, loop), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], state
    finally:
        server.close()
        for connection in tuple(state.connections):
            connection.transport.abort()
        if state.tasks:
            await asyncio.wait(state.tasks)


def body_of(response: bytes) -> bytes:
    """What stands behind the head of a response."""
    return response.partition(b"\r\n\r\n")[2]


def header_lines(head: bytes) -> list[str]:
    """The lines of a head, the first one too, with the names in lower case."""
    first, *lines = head.decode().strip().split("\r\n")
    return [first, *(f"{name.lower()}:{value}" for name, _, value in (line.partition(":") for line in lines))]
