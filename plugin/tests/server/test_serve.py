"""`serve` binds the port first, then runs a supervisor of workers; sockets and processes are fakes."""

import gc
import logging
import os
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.server import serve as serve_module
from opensearch_ml_stream.plugin.server import worker as worker_module
from opensearch_ml_stream.plugin.server.processes import WorkerContext
from opensearch_ml_stream.plugin.server.serve import serve
from opensearch_ml_stream.plugin.settings import Settings
from tests.server.fake_machine import FakeMachine

STORE = "sqlite:///:memory:"
FIGURES = "PROMETHEUS_MULTIPROC_DIR"


class FakeSocket:
    """A socket that gets port 5000 where none is asked for."""

    opened: "list[FakeSocket]"
    refused = False

    def __init__(self, *_: object) -> None:
        self.shared = False
        self.port = 0
        self.backlog: int | None = None
        self.closed = False
        self.opened.append(self)

    def __enter__(self) -> "FakeSocket":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.closed = True

    def setsockopt(self, level: int, option: int, value: int) -> None:
        self.shared = self.shared or option == socket.SO_REUSEPORT

    def bind(self, address: tuple[str, int]) -> None:
        if self.refused:
            raise OSError("Address already in use")
        assert all(other.closed or (other.shared and self.shared) for other in self.opened[:-1])
        self.port = address[1] or 5000

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    def listen(self, backlog: int) -> None:
        assert not self.closed
        self.backlog = backlog


class FakeProcesses(FakeMachine):
    """A machine whose processes are stopped after a second."""

    def __init__(self) -> None:
        super().__init__()
        self.handles_signals = False
        self.events = [*self.passes(1), self.asked_to_stop, *self.passes(0.5)]

    @contextmanager
    def handling_signals(self) -> Iterator[None]:
        self.handles_signals = True
        yield
        self.handles_signals = False

    def wait(self, seconds: float) -> None:
        assert self.handles_signals
        super().wait(seconds)


Works = list[tuple[Settings, Any, list[bool]]]  # settings, WorkerContext with fake sockets, closed sockets


@pytest.fixture(autouse=True)
def sockets(monkeypatch: pytest.MonkeyPatch) -> list[FakeSocket]:
    opened: list[FakeSocket] = []
    monkeypatch.setattr(FakeSocket, "opened", opened, raising=False)
    monkeypatch.setattr(socket, "socket", FakeSocket)
    monkeypatch.setenv(FIGURES, "not set")  # so that it is as it was afterwards
    return opened


@pytest.fixture(autouse=True)
def works(monkeypatch: pytest.MonkeyPatch, sockets: list[FakeSocket]) -> Works:
    """What the workers were given, and which sockets were closed when they began."""
    begun: Works = []

    def run_worker(settings: Settings, place: WorkerContext) -> None:
        begun.append((settings, place, [one.closed for one in sockets]))
        assert place.folder.is_dir()

    monkeypatch.setattr(serve_module, "Processes", FakeProcesses)
    monkeypatch.setattr(worker_module, "run_worker", run_worker)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (100, 1000))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: None)
    return begun


@pytest.fixture(autouse=True)
def _process_state(restored_logging: None) -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    gc.unfreeze()
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_one_worker_gets_the_socket_and_is_supervised(
    sockets: list[FakeSocket], works: Works, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        assert serve(Settings(store=STORE, port=0)) == 0
    ((listener,), ((settings, place, _),)) = sockets, works
    assert (listener.port, listener.backlog, listener.shared, listener.closed) == (5000, 4096, False, True)
    assert settings == Settings(store=STORE, port=5000)
    assert (place.listener, place.number, place.parent) == (listener, 0, -1)
    assert not place.folder.exists()
    assert caplog.messages[:1] == ["listening on http://127.0.0.1:5000"]
    assert os.environ[FIGURES] == "not set"


def test_several_workers_have_a_socket_each_on_one_port_and_metrics_in_one_folder(
    sockets: list[FakeSocket], works: Works, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        assert serve(Settings(store=STORE, port=0, workers=2)) == 0
    assert [(one.port, one.shared, one.backlog) for one in sockets] == [(5000, False, None), *[(5000, True, 4096)] * 2]
    assert [place.listener for _, place, _ in works] == sockets[1:]
    assert works[0][2] == [True, False, True]  # a worker holds no other's
    assert [place.number for _, place, _ in works] == [0, 1]
    assert Path(os.environ[FIGURES]) == works[0][1].folder
    assert caplog.messages[:1] == ["listening on http://127.0.0.1:5000 (2 workers)"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_port_that_is_in_use_is_an_error_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, works: Works, workers: int
) -> None:
    monkeypatch.setattr(FakeSocket, "refused", True)
    with pytest.raises(OSError, match="Address already in use"):
        serve(Settings(store=STORE, workers=workers))
    assert works == []


def test_a_store_that_none_can_have_is_an_error_before_the_port_is_bound(sockets: list[FakeSocket]) -> None:
    with pytest.raises(InvalidRequest, match="The store must be sqlite"):
        serve(Settings(store="mysql://host"))
    assert sockets == []
