"""Workers are started, replaced when they die, and stopped together; processes and clock are fakes."""

import logging
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.server import supervisor as supervisor_module
from opensearch_ml_stream.plugin.server.supervisor import MIN_WORKER_LIFE_SECONDS, Supervisor, _worker_process
from opensearch_ml_stream.plugin.settings import Settings
from tests.server.fake_machine import FakeMachine

RUNTIME = Path("/runtime")


def stop(number: int = signal.SIGTERM) -> None:
    signal.raise_signal(number)


def nothing() -> None:
    """The wait is over and nothing has happened."""


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    return FakeMachine(monkeypatch)


@pytest.fixture(autouse=True)
def figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture(autouse=True)
def _signal_handlers() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_all_workers_are_started_and_a_signal_stops_all(machine: FakeMachine, number: int) -> None:
    settings = Settings(workers=3)
    machine.events = [nothing, lambda: stop(number)]
    assert Supervisor(settings, RUNTIME).run() == 0
    assert machine.calls == [(_worker_process, (settings, RUNTIME))] * 3
    assert [process.exitcode for process in machine.processes] == [-signal.SIGTERM] * 3
    assert all(process.joined for process in machine.processes)
    assert machine.sleeps == []


def test_a_worker_that_dies_is_replaced(machine: FakeMachine, caplog: pytest.LogCaptureFixture) -> None:
    machine.events = [machine.dies(0, after=50, exitcode=-9), nothing, stop]
    with caplog.at_level(logging.ERROR):
        assert Supervisor(Settings(workers=2), RUNTIME).run() == 0
    assert [process.exitcode for process in machine.processes] == [-9, -signal.SIGTERM, -signal.SIGTERM]
    assert caplog.messages == ["worker 1000 ended with exit code -9; it is replaced"]
    assert machine.sleeps == []


def test_workers_that_die_at_once_are_replaced_one_a_second(machine: FakeMachine) -> None:
    machine.events = [machine.dies(0, after=0.25), machine.dies(1, after=0), machine.dies(2, after=1), stop]
    assert Supervisor(Settings(workers=1), RUNTIME).run() == 0
    assert len(machine.processes) == 4
    assert MIN_WORKER_LIFE_SECONDS == 1
    assert machine.sleeps == [0.75, 1.0]


def test_a_worker_that_ends_while_the_server_stops_is_not_replaced(machine: FakeMachine) -> None:
    machine.events = [stop]
    assert Supervisor(Settings(workers=2), RUNTIME).run() == 0
    assert len(machine.processes) == 2


def test_a_signal_during_the_pause_before_a_replacement_stops_the_server(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.events = [machine.dies(0, after=0), nothing]
    monkeypatch.setattr(supervisor_module, "sleep", lambda seconds: stop())
    assert Supervisor(Settings(workers=2), RUNTIME).run() == 0
    assert [process.exitcode for process in machine.processes] == [1, -signal.SIGTERM]


def test_the_gauges_of_a_dead_worker_are_removed(machine: FakeMachine, figures: Path) -> None:
    for pid in (1000, 1001):
        (figures / f"gauge_livesum_{pid}.db").touch()
        (figures / f"counter_{pid}.db").touch()
    left: list[str] = []
    machine.events = [
        machine.dies(0, after=5),
        lambda: left.extend(sorted(path.name for path in figures.iterdir())),
        stop,
    ]
    assert Supervisor(Settings(workers=2), RUNTIME).run() == 0
    assert left == ["counter_1000.db", "counter_1001.db", "gauge_livesum_1001.db"]
