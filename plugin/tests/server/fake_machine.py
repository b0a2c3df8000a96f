"""A machine for a supervisor: processes, heartbeats and a clock that do what a test says."""

import signal
from collections.abc import Callable, Iterator

Event = Callable[[], object]


class FakeMachine:
    """What a supervisor sees of processes, heartbeats, listeners and time; one of `events` happens while it waits."""

    def __init__(self) -> None:
        self.stops = 0
        self.now = 100.0
        self.events: list[Event] = []
        self.started: list[int] = []
        self.running: dict[int, int] = {}  # place by process
        self.signals: list[tuple[int, int]] = []
        self.deaf: set[int] = set()  # to SIGTERM
        self.hanging: set[int] = set()
        self.ready = True
        self.forgotten: list[int] = []
        self.refusals: list[OSError] = []  # of starts
        self.bind_refusals: list[OSError] = []
        self.tries: list[float] = []  # when starts were asked for
        self.is_closed = False
        self.suspended: set[int] = set()  # places at which nobody listens
        self._beats: dict[int, int] = {}
        self._ready: set[int] = set()
        self._ended: list[tuple[int, int]] = []
        self._place = 0

    # Processes.

    def start(self, work: Callable[[int], None]) -> int:
        self.tries.append(self.now)
        if self.refusals:
            raise self.refusals.pop()
        work(-1)
        pid = 1000 + len(self.started)
        self.started.append(pid)
        self.running[pid] = self._place
        return pid

    def kill(self, pid: int, number: int) -> None:
        assert pid in self.running, "another process may have this number by now"
        self.signals.append((pid, number))
        if number == signal.SIGKILL or (number == signal.SIGTERM and pid not in self.deaf):
            self._end(pid, -number if number == signal.SIGKILL else 0)

    def wait(self, seconds: float) -> None:
        self.events.pop(0)()
        for pid, place in self.running.items():
            if pid not in self.hanging:
                self._beats[place] = self._beats.get(place, 0) + 1
                if self.ready:
                    self._ready.add(place)

    def pause(self, seconds: float) -> None:
        assert self.events, "the supervisor runs on, and nothing more happens"
        self.now += seconds

    def ended(self) -> Iterator[tuple[int, int]]:
        ended, self._ended = self._ended, []
        return iter(ended)

    # Heartbeats.

    def reset(self, place: int) -> None:
        self._place = place
        self._beats[place] = 0
        self._ready.discard(place)

    def count(self, place: int) -> int:
        return self._beats[place]

    def is_ready(self, place: int) -> bool:
        return place in self._ready

    # Listeners.

    def close(self) -> None:
        self.is_closed = True

    def suspend(self, place: int) -> None:
        self.suspended.add(place)

    def resume(self, place: int) -> None:
        if place in self.suspended and self.bind_refusals:
            raise self.bind_refusals.pop()
        self.suspended.discard(place)

    # Events.

    def passes(self, seconds: float) -> list[Event]:
        """Time passes while the supervisor looks twice a second."""

        def event() -> None:
            self.now += 0.5

        return [event] * round(seconds * 2)

    def asked_to_stop(self) -> None:
        self.stops += 1

    def dies(self, pid: int, code: int = 1) -> Event:
        return lambda: self._end(pid, code)

    def hangs(self, pid: int) -> Event:
        return lambda: self.hanging.add(pid)

    def _end(self, pid: int, code: int) -> None:
        del self.running[pid]
        self._ended.append((pid, code))
