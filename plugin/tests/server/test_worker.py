"""One worker serves in this process: its listener is a fake, its connections are transports in memory."""

import asyncio
import gc
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import MLStreamError, Unavailable
from opensearch_ml_stream.plugin.app import Sidecar
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.metrics import Metrics
from opensearch_ml_stream.plugin.server import file_descriptors, processes, worker
from opensearch_ml_stream.plugin.server.http1.limits import ConnectionLimits
from opensearch_ml_stream.plugin.server.http1.protocol import StreamingProtocol
from opensearch_ml_stream.plugin.server.processes import Heartbeats, WorkerContext
from opensearch_ml_stream.plugin.server.worker import GC_THRESHOLDS, Server
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.task_failures import TaskFailures
from opensearch_ml_stream.rest_handlers.callers import OpenGate
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import (
    InFlightResponse,
    InFlightResponses,
    ResponseLimits,
)
from tests.background.broken_task import BrokenTask
from tests.upstream.fake_transport import FakeTransport
from tests.upstream.virtual_time_loop import VirtualTimeLoop

PARENT = 987_654
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
async def serving(
    monkeypatch: pytest.MonkeyPatch, runtime: Path, heartbeats: Heartbeats, failures: TaskFailures | None = None
) -> AsyncIterator[tuple[FakeServer, dict[int, Callable[[], None]]]]:
    """A worker that runs until it is stopped; its server, and what it waits for beside clients."""
    servers: list[FakeServer] = []

    async def create_server(factory: Callable[[], StreamingProtocol], **options: Any) -> FakeServer:
        servers.append(FakeServer(factory, options))
        return servers[0]

    monkeypatch.setattr(asyncio.get_running_loop(), "create_server", create_server)
    listener = FakeListener()
    place = WorkerContext(runtime, PARENT, heartbeats, failures or TaskFailures(), 0, cast(socket.socket, listener))
    readers: dict[int, Callable[[], None]] = {}
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "add_reader", readers.__setitem__)
    monkeypatch.setattr(loop, "remove_reader", lambda descriptor: readers.pop(descriptor, None))
    task = asyncio.create_task(worker._serve(SETTINGS, place))
    await until(lambda: servers or task.done())
    assert servers[0].options["sock"] is listener
    yield servers[0], readers
    await asyncio.wait_for(task, 5)
    assert readers == {}
    assert listener.closed and servers[0].closed


async def test_a_worker_serves_until_a_signal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    heartbeats = Heartbeats(1)
    async with serving(monkeypatch, tmp_path, heartbeats) as (server, _):
        assert heartbeats.is_ready(0)
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


async def test_a_worker_whose_server_has_ended_stops(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with serving(monkeypatch, tmp_path, Heartbeats(1)) as (_, readers):
        readers[PARENT]()


async def test_a_worker_beats_each_second_while_its_loop_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "BEAT_SECONDS", 0.01)
    heartbeats = Heartbeats(2)
    async with BackgroundTasks().running("heartbeat", lambda: heartbeats.beat(1)):
        await until(lambda: heartbeats.count(1) > 3)
    beats = heartbeats.count(1)
    await asyncio.sleep(0.05)
    assert (heartbeats.count(0), heartbeats.count(1)) == (0, beats)
    heartbeats.set_ready(1)
    heartbeats.reset(1)
    assert (heartbeats.count(1), heartbeats.is_ready(1)) == (0, False)


async def test_connections_are_looked_at_each_second_and_a_lack_of_descriptors_is_logged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker, "SWEEP_SECONDS", 0.01)
    monkeypatch.setattr(file_descriptors, "are_exhausted", lambda: True)
    looks: list[float] = []
    monkeypatch.setattr(StreamingProtocol, "check_deadlines", lambda self, now: looks.append(now))
    with caplog.at_level(logging.WARNING):
        async with serving(monkeypatch, tmp_path, Heartbeats(1)) as (server, _):
            server.connect()
            await until(lambda: len(looks) > 3)
            signal.raise_signal(signal.SIGTERM)
    assert looks == sorted(looks)
    assert any("no file descriptor is left" in message for message in caplog.messages)


@pytest.mark.breaks("connections")
async def test_connections_are_looked_at_though_a_look_has_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker, "SWEEP_SECONDS", 0.01)
    broken = BrokenTask(monkeypatch, caplog)
    broken.breaks(file_descriptors, "are_exhausted")
    async with serving(monkeypatch, tmp_path, Heartbeats(1), broken.background.failures):
        await broken.recovers("connections")
        signal.raise_signal(signal.SIGTERM)


def test_the_settings_limit_what_a_client_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_descriptors, "limit", lambda: 1_000_000)
    limits = worker.connection_limits(Settings(request_timeout_seconds=7, max_connections=8))
    assert limits == ConnectionLimits(request_seconds=7, max_connections=8)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Never called."""


async def ping() -> None:
    """Never called."""


def new_server(grace: float = 30) -> tuple[Server, InFlightResponses]:
    in_flight = InFlightResponses(ResponseLimits(max_body_size=1, first_event_wait=1, heartbeat=1))
    sidecar = Sidecar(
        application,
        in_flight,
        LiveSettings(SETTINGS),
        Metrics(),
        BackgroundTasks(),
        OpenGate(),
        ping,
        services=(),
        drains=(),
    )
    return Server(sidecar, grace, ConnectionLimits()), in_flight


async def test_the_first_signal_stops_the_server_and_the_second_its_responses() -> None:
    server, in_flight = new_server()
    response = FakeResponse(in_flight)
    in_flight.add(cast(InFlightResponse, response))
    with server.capture_signals():
        assert not server.should_exit
        signal.raise_signal(signal.SIGTERM)
        await until(lambda: server.should_exit)
        assert response.interrupted_by == []
        signal.raise_signal(signal.SIGTERM)
        await until(lambda: response.interrupted_by)
    assert isinstance(response.interrupted_by[0], Unavailable)
    assert not asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)


class FakeConnection:
    def __init__(self, server: Server, in_flight: InFlightResponses) -> None:
        self.shut_down_with: list[int] = []
        self._server = server
        self._in_flight = in_flight

    def shutdown(self) -> None:
        self.shut_down_with.append(len(self._in_flight))
        if not len(self._in_flight):
            self._server.server_state.connections.discard(cast(Any, self))


Outcome = tuple[FakeResponse, FakeConnection, float]


async def stopped(grace: float, ends_after: float | None) -> Outcome:
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


def in_virtual_time(call: Coroutine[Any, Any, Outcome]) -> Outcome:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(call)


def test_a_response_may_end_within_the_grace_time() -> None:
    response, connection, seconds = in_virtual_time(stopped(grace=30, ends_after=10))
    assert response.interrupted_by == []
    assert connection.shut_down_with == [1, 0]  # told at once that it is the last response, and again at the end
    assert 10 <= seconds < 11


def test_a_response_that_goes_on_is_interrupted_after_the_grace_time() -> None:
    response, connection, seconds = in_virtual_time(stopped(grace=30, ends_after=None))
    assert [type(error) for error in response.interrupted_by] == [Unavailable]
    assert connection.shut_down_with == [1, 0]
    assert 30 <= seconds < 31


def test_responses_of_some_size_do_not_pay_for_their_memory_each_time() -> None:
    program = """
import resource
from opensearch_ml_stream.plugin.server.worker import keep_freed_memory
keep_freed_memory()
def respond():
    return [b"%d" % number * 100_000 for number in range(32)]
respond()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    respond()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    faults = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True).stdout
    assert int(faults) < 20 * 32  # of some 20,000 without it
