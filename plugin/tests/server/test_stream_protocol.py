"""The server's protocol: uvicorn's, with a writer of chunks for every request whose response can begin at once."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from opensearch_ml_stream.plugin.server.protocol import StreamFlowControl, StreamingProtocol
from opensearch_ml_stream.rest_handlers.http.chunk_writer import CHUNK_WRITER, ChunkWriter
from tests.upstream.fake_transport import FakeTransport

GET = b"GET /%b HTTP/1.1\r\nHost: h\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


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


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Connection:
    """A client's connection in memory."""

    def __init__(self) -> None:
        self.app = Requests()
        config = uvicorn.Config(self.app, lifespan="off", ws="none", log_config=None, access_log=False)
        self.state = ServerState()
        self.protocol = StreamingProtocol(config, self.state, {})
        self.transport = FakeTransport(self.protocol)
        self.protocol.connection_made(self.transport)

    async def receive(self, data: bytes) -> None:
        self.transport.receive(data)
        await settle()

    def sent(self) -> bytes:
        """What was sent since the last call."""
        data = b"".join(self.transport.written)
        self.transport.written.clear()
        return data


@pytest.fixture
async def connection() -> AsyncIterator[Connection]:
    opened = Connection()
    yield opened
    opened.transport.close()
    for task in opened.state.tasks:
        task.cancel()
    await settle()


async def test_a_request_gets_a_writer_of_chunks(connection: Connection) -> None:
    await connection.receive(GET % b"a")
    assert connection.sent() == HEAD
    writer = connection.app.writer()
    assert writer is not None
    assert writer.write_chunk(b"data: 1\n\n") is True
    assert connection.sent() == b"9\r\ndata: 1\n\n\r\n"  # at once
    assert writer.write_chunk(b"x" * 300) is True
    assert connection.sent() == b"12c\r\n" + b"x" * 300 + b"\r\n"
    await writer.drain()
    await connection.app.end("/a")
    assert connection.sent() == b"0\r\n\r\n"
    assert not connection.transport.is_closing()


async def test_a_connection_has_the_flow_control_that_is_small_while_it_is_idle(connection: Connection) -> None:
    flow: object = connection.protocol.flow  # uvicorn types it as its own
    assert isinstance(flow, StreamFlowControl)


async def test_each_request_on_a_connection_gets_a_writer_of_its_own(connection: Connection) -> None:
    await connection.receive(GET % b"a")
    await connection.app.end("/a")
    await connection.receive(GET % b"b")
    assert connection.app.paths == ["/a", "/b"]
    first, second = connection.app.writer(0), connection.app.writer(1)
    assert first is not None and second is not None and first is not second


async def test_a_request_behind_one_that_has_not_ended_gets_no_writer(connection: Connection) -> None:
    await connection.receive(GET % b"a" + GET % b"b" + GET % b"c")
    assert connection.app.paths == ["/a"]
    assert connection.app.writer(0) is not None
    assert "pause_reading" in connection.transport.calls
    await connection.app.end("/a")
    await connection.app.end("/b")
    assert connection.app.paths == ["/a", "/b", "/c"]
    assert (connection.app.writer(1), connection.app.writer(2)) == (None, None)
    assert "resume_reading" in connection.transport.calls
    assert connection.sent() == HEAD + b"0\r\n\r\n" + HEAD + b"0\r\n\r\n" + HEAD


async def test_a_request_whose_head_would_have_to_wait_gets_no_writer(connection: Connection) -> None:
    connection.protocol.pause_writing()
    await connection.receive(GET % b"a")
    assert connection.app.writer() is None
    assert connection.sent() == b""
    connection.protocol.resume_writing()
    await settle()
    assert connection.sent() == HEAD


async def test_a_slow_client_is_waited_for(connection: Connection) -> None:
    await connection.receive(GET % b"a")
    writer = connection.app.writer()
    assert writer is not None
    connection.protocol.pause_writing()
    assert writer.write_chunk(b"one") is False
    assert connection.sent() == HEAD + b"3\r\none\r\n"  # what was handed over is sent
    drained = asyncio.create_task(writer.drain())
    await settle()
    assert not drained.done()
    connection.protocol.resume_writing()
    await drained
    assert writer.write_chunk(b"two") is True


async def test_nothing_is_written_to_a_client_that_has_disconnected(connection: Connection) -> None:
    await connection.receive(GET % b"a")
    writer = connection.app.writer()
    assert writer is not None
    connection.sent()
    connection.transport.close()
    assert writer.write_chunk(b"one") is True
    assert connection.sent() == b""


async def test_a_client_that_disconnects_ends_the_wait_for_it(connection: Connection) -> None:
    await connection.receive(GET % b"a")
    writer = connection.app.writer()
    assert writer is not None
    connection.protocol.pause_writing()
    drained = asyncio.create_task(writer.drain())
    await settle()
    connection.transport.reset()
    await asyncio.wait_for(drained, 1)


async def test_a_writer_says_when_it_wrote_last(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 20.0, 30.0])
    monkeypatch.setattr("opensearch_ml_stream.plugin.server.protocol.monotonic", lambda: next(clock))
    await connection.receive(GET % b"a")
    writer = connection.app.writer()
    assert writer is not None
    assert writer.last_write == 10.0
    writer.write_chunk(b"one")
    assert writer.last_write == 20.0
    connection.transport.close()
    writer.write_chunk(b"one")
    assert writer.last_write == 30.0
