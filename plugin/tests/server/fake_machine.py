"""A machine for a supervisor: processes and a clock that do what a test says."""

import multiprocessing
import signal
from collections.abc import Callable

import pytest

from opensearch_ml_stream.plugin.server import supervisor as supervisor_module


class FakeProcess:
    def __init__(self, number: int) -> None:
        self.pid = 1000 + number
        self.sentinel = number
        self.exitcode: int | None = None
        self.started = False
        self.joined = False

    def start(self) -> None:
        self.started = True

    def terminate(self) -> None:
        self.end(-signal.SIGTERM)

    def end(self, exitcode: int) -> None:
        assert self.started
        if self.exitcode is None:
            self.exitcode = exitcode

    def join(self) -> None:
        assert self.exitcode is not None, "joining would wait for ever"
        self.joined = True


class FakeMachine:
    """What `multiprocessing` and `time` are to a supervisor; one of `events` happens while it waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.sleeps: list[float] = []
        self.events: list[Callable[[], object]] = []
        self.processes: list[FakeProcess] = []
        self.calls: list[tuple[object, tuple[object, ...]]] = []
        monkeypatch.setattr(multiprocessing, "get_context", self._get_context)
        monkeypatch.setattr(supervisor_module, "wait", self._wait)
        monkeypatch.setattr(supervisor_module, "monotonic", lambda: self.now)
        monkeypatch.setattr(supervisor_module, "sleep", self._sleep)

    def Process(self, target: object, args: tuple[object, ...]) -> FakeProcess:  # noqa: N802 - multiprocessing's name
        self.calls.append((target, args))
        self.processes.append(FakeProcess(len(self.processes)))
        return self.processes[-1]

    def dies(self, number: int, *, after: float, exitcode: int = 1) -> Callable[[], object]:
        def event() -> None:
            self.now += after
            self.processes[number].end(exitcode)

        return event

    def _get_context(self, method: str) -> "FakeMachine":
        assert method == "spawn"  # a forked worker would share the parent's threads and locks
        return self

    def _wait(self, sentinels: list[int], timeout: float) -> list[int]:
        assert timeout == 0.5  # a signal interrupts no wait: the supervisor has to look itself
        self.events.pop(0)()
        return [sentinel for sentinel in sentinels if self.processes[sentinel].exitcode is not None]

    def _sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds
