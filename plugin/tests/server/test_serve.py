"""`serve` binds the port first, then runs one worker here or a supervisor; sockets, processes and loop are fakes."""

import logging
import os
import signal
import socket
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.server.serve import serve
from opensearch_ml_stream.plugin.server.supervisor import _worker_process
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
        self.backlog = backlog


@pytest.fixture(autouse=True)
def sockets(monkeypatch: pytest.MonkeyPatch) -> list[FakeSocket]:
    opened: list[FakeSocket] = []
    monkeypatch.setattr(FakeSocket, "opened", opened, raising=False)
    monkeypatch.setattr(socket, "socket", FakeSocket)
    monkeypatch.setenv(FIGURES, "not set")  # so that it is as it was afterwards
    return opened


@pytest.fixture(autouse=True)
def _process_state() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    levels = {name: logging.getLogger(name).level for name in ("uvicorn", "opensearch")}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def test_one_worker_runs_in_this_process(
    monkeypatch: pytest.MonkeyPatch, sockets: list[FakeSocket], caplog: pytest.LogCaptureFixture
) -> None:
    workers: list[dict[str, Any]] = []

    def run(worker: Coroutine[Any, Any, None]) -> None:
        assert worker.cr_frame is not None  # type: ignore[attr-defined]
        workers.append(dict(worker.cr_frame.f_locals))  # type: ignore[attr-defined]
        assert workers[0]["runtime"].is_dir() and not sockets[0].closed
        worker.close()

    monkeypatch.setattr(uvloop, "run", run)
    with caplog.at_level(logging.INFO):
        assert serve(Settings(store=STORE, port=0)) == 0
    ((listener,), (arguments,)) = sockets, workers
    assert (listener.port, listener.backlog, listener.shared, listener.closed) == (5000, 4096, False, True)
    assert arguments["settings"] == Settings(store=STORE, port=5000)
    assert arguments["listener"] is listener
    assert not arguments["runtime"].exists()
    assert caplog.messages == ["listening on http://127.0.0.1:5000"]
    assert os.environ[FIGURES] == "not set"


def test_several_workers_share_a_port_that_the_server_holds(
    monkeypatch: pytest.MonkeyPatch, sockets: list[FakeSocket], caplog: pytest.LogCaptureFixture
) -> None:
    machine = FakeMachine(monkeypatch)
    folders: list[Path] = []

    def running() -> None:
        folders.append(Path(os.environ[FIGURES]))
        assert folders[0].is_dir()
        assert [one.closed for one in sockets] == [True, False]
        signal.raise_signal(signal.SIGTERM)

    machine.events = [running]
    with caplog.at_level(logging.INFO):
        assert serve(Settings(store=STORE, port=0, workers=2)) == 0
    assert [(one.port, one.shared, one.backlog, one.closed) for one in sockets] == [
        (5000, False, None, True),
        (5000, True, None, True),
    ]
    assert [arguments for _, arguments in machine.calls] == [
        (Settings(store=STORE, port=5000, workers=2), folders[0])
    ] * 2
    assert not folders[0].exists()
    assert caplog.messages == ["listening on http://127.0.0.1:5000 (2 workers)"]


def test_a_worker_process_shares_the_port_and_serves(
    monkeypatch: pytest.MonkeyPatch, sockets: list[FakeSocket], tmp_path: Path
) -> None:
    workers: list[dict[str, Any]] = []

    def run(worker: Coroutine[Any, Any, None]) -> None:
        workers.append(dict(worker.cr_frame.f_locals))  # type: ignore[attr-defined]
        assert not sockets[0].closed
        worker.close()

    monkeypatch.setattr(uvloop, "run", run)
    settings = Settings(store=STORE, port=5001, workers=2)
    _worker_process(settings, tmp_path)
    ((listener,), (arguments,)) = sockets, workers
    assert (listener.port, listener.backlog, listener.shared, listener.closed) == (5001, 4096, True, True)
    assert arguments == {"settings": settings, "listener": listener, "runtime": tmp_path}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_port_that_is_in_use_is_an_error_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, sockets: list[FakeSocket], workers: int
) -> None:
    monkeypatch.setattr(FakeSocket, "refused", True)
    with pytest.raises(OSError, match="Address already in use"):
        serve(Settings(store=STORE, workers=workers))


def test_a_store_that_none_can_have_is_an_error_before_the_port_is_bound(sockets: list[FakeSocket]) -> None:
    with pytest.raises(InvalidRequest, match="The store must be sqlite"):
        serve(Settings(store="mysql://host"))
    assert sockets == []
