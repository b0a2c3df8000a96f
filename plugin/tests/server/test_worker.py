"""One worker serves in this process: its listener is a fake, its connections are transports in memory."""

import asyncio
import gc
import json
import logging
import multiprocessing
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import MLStreamError, Unavailable
from opensearch_ml_stream.plugin.server import worker
from opensearch_ml_stream.plugin.server.protocol import StreamingProtocol
from opensearch_ml_stream.plugin.server.worker import GC_THRESHOLDS, configure_logging, run_worker
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import (
    InFlightResponse,
    InFlightResponses,
    ResponseLimits,
)
from tests.upstream.fake_transport import FakeTransport

SETTINGS = Settings(store="sqlite:///:memory:")


@pytest.fixture(autouse=True)
def _process_state() -> Iterator[None]:
    """What a worker changes in its process is as it was afterwards."""
    thresholds = gc.get_threshold()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    levels = {name: logging.getLogger(name).level for name in ("uvicorn", "opensearch")}
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@dataclass
class FakeServer:
    """What the loop makes of a listening socket."""

    factory: Callable[[], StreamingProtocol]
    options: dict[str, Any]
    closed: bool = False

    def close(self) -> None:
        self.closed = True

    async def wait_closed(self) -> None:
        assert self.closed

    def connect(self) -> FakeTransport:
        protocol = self.factory()
        transport = FakeTransport(protocol)
        protocol.connection_made(transport)
        return transport


@dataclass
class FakeListener:
    closed: bool = False

    def close(self) -> None:
        self.closed = True


@dataclass(eq=False)
class FakeResponse:
    """A response in flight that is there until it is interrupted."""

    in_flight: InFlightResponses
    interrupted_by: list[MLStreamError] = field(default_factory=list)

    def interrupt(self, reason: MLStreamError) -> None:
        self.interrupted_by.append(reason)
        self.in_flight.remove(cast(InFlightResponse, self))


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)


@asynccontextmanager
async def serving(monkeypatch: pytest.MonkeyPatch, runtime: Path) -> AsyncIterator[FakeServer]:
    """A worker that runs until it is signalled."""
    servers: list[FakeServer] = []

    async def create_server(factory: Callable[[], StreamingProtocol], **options: Any) -> FakeServer:
        servers.append(FakeServer(factory, options))
        return servers[0]

    monkeypatch.setattr(asyncio.get_running_loop(), "create_server", create_server)
    listener = FakeListener()
    task = asyncio.create_task(run_worker(SETTINGS, cast(socket.socket, listener), runtime))
    await until(lambda: servers or task.done())
    assert servers[0].options["sock"] is listener
    yield servers[0]
    await asyncio.wait_for(task, 5)
    assert listener.closed and servers[0].closed


async def test_a_worker_serves_until_a_signal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with serving(monkeypatch, tmp_path) as server:
        assert server.options["backlog"] == 4096
        assert gc.get_threshold() == GC_THRESHOLDS
        assert gc.get_freeze_count() > 0
        transport = server.connect()
        assert type(transport.protocol) is StreamingProtocol
        transport.receive(b"GET /_health/live HTTP/1.1\r\nHost: h\r\n\r\n")
        await until(lambda: transport.written)
        head, _, body = b"".join(transport.written).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"\r\nserver:" not in head.lower()
        assert json.loads(body)
        signal.raise_signal(signal.SIGTERM)
    assert transport.is_closing()


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Never called."""


def new_server(grace: float = 30) -> tuple[worker._Server, InFlightResponses]:
    in_flight = InFlightResponses(ResponseLimits(max_body_size=1, first_event_wait=1, heartbeat=1))
    config = uvicorn.Config(application, lifespan="off", log_config=None)
    return worker._Server(config, in_flight, grace), in_flight


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_first_signal_stops_the_server_and_the_second_its_responses(number: int) -> None:
    server, in_flight = new_server()
    response = FakeResponse(in_flight)
    in_flight.add(cast(InFlightResponse, response))
    with server.capture_signals():
        assert not server.should_exit
        signal.raise_signal(number)
        await until(lambda: server.should_exit)
        assert response.interrupted_by == []
        signal.raise_signal(number)
        await until(lambda: response.interrupted_by)
    assert isinstance(response.interrupted_by[0], Unavailable)
    assert not asyncio.get_running_loop().remove_signal_handler(number)


class FakeParent:
    def __init__(self, sentinel: int) -> None:
        self.sentinel = sentinel


async def test_a_worker_whose_parent_dies_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    readers: dict[int, tuple[Callable[..., None], tuple[Any, ...]]] = {}
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "add_reader", lambda fd, callback, *args: readers.update({fd: (callback, args)}))
    monkeypatch.setattr(loop, "remove_reader", readers.pop)
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: FakeParent(987_654))
    server, _ = new_server()
    with server.capture_signals():
        callback, arguments = readers[987_654]
        callback(*arguments)
        assert server.should_exit
        assert 987_654 not in readers


class FakeConnection:
    def __init__(self, server: worker._Server, in_flight: InFlightResponses) -> None:
        self.shut_down_with: list[int] = []
        self._server = server
        self._in_flight = in_flight

    def shutdown(self) -> None:
        self.shut_down_with.append(len(self._in_flight))
        if not len(self._in_flight):
            self._server.server_state.connections.discard(cast(Any, self))


async def stopped(grace: float, ends_after: float | None) -> tuple[FakeResponse, FakeConnection, float]:
    """A server with one response in flight is shut down."""
    server, in_flight = new_server(grace)
    server.servers = cast(Any, [FakeServer(cast(Any, None), {})])
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    response, connection = FakeResponse(in_flight), FakeConnection(server, in_flight)
    in_flight.add(cast(InFlightResponse, response))
    server.server_state.connections.add(cast(Any, connection))
    loop = asyncio.get_running_loop()
    if ends_after is not None:
        loop.call_later(ends_after, in_flight.remove, cast(InFlightResponse, response))
    began = loop.time()
    await server.shutdown()
    return response, connection, loop.time() - began


async def test_a_response_may_end_within_the_grace_time() -> None:
    response, connection, seconds = await stopped(grace=5, ends_after=0.05)
    assert response.interrupted_by == []
    assert connection.shut_down_with == [1, 0]  # told at once that it is the last response, and again at the end
    assert 0.05 <= seconds < 2


async def test_a_response_that_goes_on_is_interrupted_after_the_grace_time() -> None:
    response, connection, seconds = await stopped(grace=0.05, ends_after=None)
    assert [type(error) for error in response.interrupted_by] == [Unavailable]
    assert connection.shut_down_with == [1, 0]
    assert 0.05 <= seconds < 2


def test_the_libraries_log_what_an_operator_can_act_upon() -> None:
    configure_logging()
    assert logging.getLogger("uvicorn").level == logging.WARNING
    assert logging.getLogger("opensearch").level == logging.ERROR
