"""A client's connection in memory, over a clock that a test moves, and an application that does what it says."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from starlette.types import Message, Receive, Scope, Send
from uvicorn.server import ServerState

from opensearch_ml_stream.plugin.logs.request_log import RequestLog
from opensearch_ml_stream.plugin.server.http1.limits import ConnectionLimits
from opensearch_ml_stream.plugin.server.http1.protocol import SharedState, StreamingProtocol
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import CHUNK_WRITER, ChunkWriter
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory
from tests.upstream.fake_transport import FakeTransport


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Requests:
    """An ASGI application that keeps its requests open, until they are told to end."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.scopes: list[Scope] = []
        self._ends: dict[str, asyncio.Event] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.paths.append(scope["path"])
        self.scopes.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await self._ends.setdefault(scope["path"], asyncio.Event()).wait()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def end(self, path: str) -> None:
        self._ends.setdefault(path, asyncio.Event()).set()
        await settle()

    def writer(self, number: int = 0) -> ChunkWriter | None:
        offered: ChunkWriter | None = self.scopes[number].get("extensions", {}).get(CHUNK_WRITER)
        return offered


class Bodies:
    """An ASGI application that reads whole requests and says how long their bodies were."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.disconnects = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        message: Message = {"type": "", "more_body": True}
        while message["more_body"]:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.disconnects += 1
                return
            body += message["body"]
        self.bodies.append(body)
        text = b"%d" % len(body)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(text))]})
        await send({"type": "http.response.body", "body": text})


class _Clock:
    """The event loop as a connection sees it, with a time of its own."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._later: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], None]) -> None:
        self._later.append((self.now + delay, callback))

    def passes(self, seconds: float) -> None:
        self.now += seconds
        while due := [call for call in self._later if call[0] <= self.now]:
            self._later.remove(due[0])
            due[0][1]()

    def create_task(self, work: Any) -> asyncio.Task[Any]:
        return asyncio.get_running_loop().create_task(work)


class Connection:
    """A client's connection to `app`."""

    def __init__(
        self,
        app: Callable[[Scope, Receive, Send], Awaitable[None]],
        limits: ConnectionLimits | None = None,
        bodies: BodyMemory | None = None,
        state: ServerState | None = None,
        log: RequestLog | None = None,
    ) -> None:
        self.state = state or ServerState()
        self.bodies = bodies or BodyMemory(10_000_000, 10_000_000)
        self.warnings: list[str] = []
        self.clock = _Clock()
        shared = SharedState(
            app, self.state, limits or ConnectionLimits(), self.bodies, self.warnings.append, log or RequestLog()
        )
        self.protocol = StreamingProtocol(shared, cast(asyncio.AbstractEventLoop, self.clock))
        self.transport = FakeTransport(self.protocol)
        self.protocol.connection_made(self.transport)

    async def receive(self, data: bytes) -> None:
        self.transport.receive(data)
        await settle()

    async def passes(self, seconds: float) -> None:
        """Time passes, and the worker looks at the connection each second."""
        for _ in range(round(seconds)):
            self.clock.passes(1)
            self.protocol.check_deadlines(self.clock.now)
        await settle()

    def sent(self) -> bytes:
        """What was sent since the last call."""
        data = b"".join(self.transport.written)
        self.transport.written.clear()
        return data

    async def end(self) -> None:
        self.transport.close()
        for task in self.state.tasks:
            task.cancel()
        await settle()
