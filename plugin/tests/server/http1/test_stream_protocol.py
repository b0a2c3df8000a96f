"""A request whose response can begin at once gets a writer of chunks, which waits for slow clients."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count

import pytest

from opensearch_ml_stream.plugin.server.http1.flow_control import FlowControl
from tests.server.client_connection import Connection, Requests, settle
from tests.upstream.fake_transport import FakeTransport

GET = b"GET /%b HTTP/1.1\r\nHost: h\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.fixture
def app() -> Requests:
    return Requests()


@pytest.fixture
async def connection(app: Requests) -> AsyncIterator[Connection]:
    opened = Connection(app)
    yield opened
    await opened.end()


async def test_a_request_gets_a_writer_of_chunks(connection: Connection, app: Requests) -> None:
    await connection.receive(GET % b"a")
    assert connection.sent() == b""  # the head waits for the first bytes of the body
    writer = app.writer()
    assert writer is not None
    assert writer.write_chunk(b"data: 1\n\n") is True
    assert connection.sent() == HEAD + b"9\r\ndata: 1\n\n\r\n"  # at once
    assert writer.write_chunk(b"x" * 300) is True
    assert connection.sent() == b"12c\r\n" + b"x" * 300 + b"\r\n"
    await writer.drain()
    await app.end("/a")
    assert connection.sent() == b"0\r\n\r\n"
    assert not connection.transport.is_closing()


async def test_each_request_on_a_connection_gets_a_writer_of_its_own(connection: Connection, app: Requests) -> None:
    await connection.receive(GET % b"a")
    await app.end("/a")
    await connection.receive(GET % b"b")
    assert app.paths == ["/a", "/b"]
    first, second = app.writer(0), app.writer(1)
    assert first is not None and second is not None and first is not second


async def test_a_request_behind_one_that_has_not_ended_gets_no_writer(connection: Connection, app: Requests) -> None:
    await connection.receive(GET % b"a" + GET % b"b" + GET % b"c")
    assert app.paths == ["/a"]
    assert app.writer(0) is not None
    assert "pause_reading" in connection.transport.calls
    await app.end("/a")
    await app.end("/b")
    assert app.paths == ["/a", "/b", "/c"]
    assert (app.writer(1), app.writer(2)) == (None, None)
    assert "resume_reading" in connection.transport.calls
    assert connection.sent() == HEAD + b"0\r\n\r\n" + HEAD + b"0\r\n\r\n" + HEAD


async def test_a_request_whose_head_would_have_to_wait_gets_no_writer(connection: Connection, app: Requests) -> None:
    connection.protocol.pause_writing()
    await connection.receive(GET % b"a")
    assert app.writer() is None
    assert connection.sent() == b""
    connection.protocol.resume_writing()
    await settle()
    assert connection.sent() == HEAD


async def test_a_slow_client_is_waited_for(connection: Connection, app: Requests) -> None:
    await connection.receive(GET % b"a")
    writer = app.writer()
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


async def test_nothing_is_written_to_a_client_that_has_disconnected(connection: Connection, app: Requests) -> None:
    await connection.receive(GET % b"a")
    writer = app.writer()
    assert writer is not None
    connection.sent()
    connection.transport.close()
    assert writer.write_chunk(b"one") is True
    assert connection.sent() == b""


async def test_a_client_that_disconnects_ends_the_wait_for_it(connection: Connection, app: Requests) -> None:
    await connection.receive(GET % b"a")
    writer = app.writer()
    assert writer is not None
    connection.protocol.pause_writing()
    drained = asyncio.create_task(writer.drain())
    await settle()
    connection.transport.reset()
    await asyncio.wait_for(drained, 1)


async def test_a_writer_says_when_it_wrote_last(
    connection: Connection, app: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = count(10.0, 10.0)
    monkeypatch.setattr("opensearch_ml_stream.plugin.server.http1.request_cycle.monotonic", lambda: next(clock))
    await connection.receive(GET % b"a")
    writer = app.writer()
    assert writer is not None
    start = writer.last_write
    writer.write_chunk(b"one")
    first = writer.last_write
    connection.transport.close()
    writer.write_chunk(b"one")
    assert start < first < writer.last_write < next(clock)


async def test_flow_control_pauses_and_resumes_reading_once() -> None:
    transport = FakeTransport(asyncio.Protocol())
    flow = FlowControl(transport)
    assert (flow.read_paused, flow.write_paused) == (False, False)
    flow.resume_reading()
    assert transport.calls == []
    flow.pause_reading()
    flow.pause_reading()
    assert flow.read_paused and transport.calls == ["pause_reading"]
    flow.resume_reading()
    flow.resume_reading()
    assert not flow.read_paused and transport.calls == ["pause_reading", "resume_reading"]


async def test_flow_control_lets_all_who_wait_go_on_when_the_transport_accepts_bytes_again() -> None:
    flow = FlowControl(FakeTransport(asyncio.Protocol()))
    await flow.drain()
    flow.pause_writing()
    waiting = [asyncio.create_task(flow.drain()) for _ in range(2)]
    await settle()
    flow.pause_writing()  # said twice, the first waiters are not forgotten
    assert flow.write_paused and not any(task.done() for task in waiting)
    flow.resume_writing()
    assert not flow.write_paused
    await asyncio.gather(*waiting)
    await flow.drain()
    flow.resume_writing()
    flow.pause_writing()
    drained = asyncio.create_task(flow.drain())
    await settle()
    assert not drained.done()
    drained.cancel()


async def test_an_idle_flow_control_holds_no_event() -> None:
    flow = FlowControl(FakeTransport(asyncio.Protocol()))
    assert flow._writable is None
    flow.pause_writing()
    assert flow._writable is not None
    flow.resume_writing()
    assert flow._writable is None
