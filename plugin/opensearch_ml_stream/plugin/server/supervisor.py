"""Supervisor: starts the workers, replaces those that die or hang, and stops them in time.

It does not compare times of a clock: a worker is silent for as long as this process has observed it silent. So none is
killed because the machine slept or because all processes were suspended.
"""

import logging
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opensearch_ml_stream.plugin.server.listener import Listeners
from opensearch_ml_stream.plugin.server.processes import DUMP_SIGNAL, Heartbeats, Processes
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.task_failures import ProcessFailures

TURN_SECONDS = 0.5
MIN_WORKER_LIFE_SECONDS = 1.0  # a worker that dies sooner is replaced after this time
MAX_START_PAUSE_SECONDS = 30.0  # between attempts to start one that cannot be started or ends before it is ready
BLOCKED_SECONDS = 10.0
START_SECONDS = 60.0  # a worker that is not ready may block for this time
DUMP_SECONDS = 1.0  # for a worker to write where it hangs
STOP_SECONDS = 4.5  # beyond the grace time; with a turn, a stop takes at most 5 s beyond it
SECOND_STOP_SECONDS = 1.0
SIDE_STOP_SECONDS = 4.0  # for the processes beside the workers, once these have ended

TASK = "supervisor"  # the name under which its failures are counted

log = logging.getLogger("opensearch_ml_stream")


@dataclass(slots=True)
class Worker:
    """A worker process, or a process beside the workers; `side` is the title of such a one, "" for a worker.

    `silent` are the observed seconds without a heartbeat, `age` those since its start.
    """

    place: int
    pid: int
    side: str = ""
    beats: int = 0
    silent: float = 0.0
    age: float = 0.0
    dump_requested: bool = False  # of where it hangs
    slow_start: bool = False
    serves: bool = False
    told_to_stop: bool = False

    @property
    def title(self) -> str:
        """Its name in the log."""
        return f"{self.side or 'worker'} {self.pid}"


class Supervisor:
    """The parent process of the workers.

    `work(place, parent)` runs in the process at a place, `on_exit(pid)` is called when a process has ended. `sides` are
    the titles of the processes beside the workers, whose places follow those of the workers. They are told to stop
    after all workers have ended, so that the workers' calls can end.
    """

    def __init__(
        self,
        settings: Settings,
        machine: Processes,
        heartbeats: Heartbeats,
        listeners: Listeners,
        work: Callable[[int, int], None],
        on_exit: Callable[[int], None],
        clock: Callable[[], float],
        failures: ProcessFailures,
        sides: Sequence[str] = (),
    ) -> None:
        self._settings = settings
        self._machine = machine
        self._heartbeats = heartbeats
        self._listeners = listeners
        self._work = work
        self._on_exit = on_exit
        self._clock = clock
        self._failures = failures
        self._sides = sides
        self._workers: dict[int, Worker] = {}
        self._restarts: dict[int, float] = {}  # by place that has no process: seconds until it is started
        self._pauses: dict[int, float] = {}  # by place whose process was not ready: seconds before the next attempt
        self._unstarted: set[int] = set()  # places that had no ready process since a failure
        self._is_failing = False  # the last turn failed
        self._stops = 0
        self._stop_seconds_left = 0.0  # until the processes that are left are killed, in a stop
        self._was_ready = False
        self._exit_code = 0

    def run(self) -> int:
        """Run the workers until a signal, then close the port; return the exit code."""
        self._failures.register(TASK)
        for place in range(self._settings.workers + len(self._sides)):
            if not self._machine.stops:  # a signal may come at any time
                self._start(place)
        if self._none_can_serve():
            log.error("no worker can be started; the server stops")
            self._give_up()
        last = self._clock()
        while self._workers or (self._restarts and not self._stops):
            try:
                self._machine.wait(TURN_SECONDS)
                now = self._clock()
                passed = min(now - last, 2 * TURN_SECONDS)  # of more, this process was not running itself
                last = now
                self._take_turn(passed)
            except Exception as error:  # no error may end the workers' streams
                log.exception("the supervisor failed; it continues")
                self._failures.failed(TASK, error, again=self._is_failing)
                self._is_failing = True
                self._machine.pause(TURN_SECONDS)
            else:
                if self._is_failing:
                    self._failures.recovered(TASK)
                self._is_failing = False
        log.info("stopped")
        return self._exit_code

    def _take_turn(self, passed: float) -> None:
        for pid, code in self._machine.ended():
            self._handle_exit(pid, code)
        if self._machine.stops > self._stops:
            self._stop()
        elif self._stops:
            self._stop_sides()
            self._kill_late(passed)
        else:
            self._check_workers(passed)
            self._start_due(passed)

    def _start(self, place: int) -> None:
        """Start the process at a place, or schedule another attempt if that fails."""
        self._heartbeats.reset(place)
        side = "" if place < self._settings.workers else self._sides[place - self._settings.workers]
        try:
            if not side:
                self._listeners.resume(place)
            pid = self._machine.start(lambda parent: self._work(place, parent))
        except OSError as error:
            self._restarts[place] = self._pause(place)
            log.error(
                "a %s cannot be started (%s); it is tried again in %g s",
                side or "worker",
                error.strerror,
                self._restarts[place],
            )
            self._count_failed_start(place, error)
            return
        self._restarts.pop(place, None)
        self._workers[pid] = Worker(place, pid, side)

    def _count_failed_start(self, place: int, error: OSError | str) -> None:
        """Count a process that did not start or ended before it was ready, as failing until one is ready there."""
        self._failures.failed(TASK, error, again=place in self._unstarted)
        self._unstarted.add(place)

    def _pause(self, place: int) -> float:
        """Return the seconds until the next attempt to start a process; they double with each attempt.

        Meanwhile the other workers get the connections, if any of them is ready.
        """
        others_serve = any(each.serves and not each.side for each in self._workers.values())
        if place < self._settings.workers and others_serve:
            self._listeners.suspend(place)
        pause = self._pauses.get(place, MIN_WORKER_LIFE_SECONDS)
        self._pauses[place] = min(2 * pause, MAX_START_PAUSE_SECONDS)
        return pause

    def _start_due(self, passed: float) -> None:
        for place, seconds in list(self._restarts.items()):
            self._restarts[place] = seconds - passed
            if self._restarts[place] <= 0:
                self._start(place)

    def _none_can_serve(self) -> bool:
        """Return whether no worker was ever ready and all have failed, so that the next ones would fail, too."""
        return not self._was_ready and all(place in self._pauses for place in range(self._settings.workers))

    def _give_up(self) -> None:
        self._exit_code = 1
        self._stop()

    def _handle_exit(self, pid: int, code: int) -> None:
        worker = self._workers.pop(pid, None)
        if worker is None:  # not a child that this started
            return
        has_served = worker.serves or self._heartbeats.is_ready(worker.place)
        self._was_ready = self._was_ready or (has_served and not worker.side)
        if not self._stops and has_served:
            log.error("%s %s; it is replaced", worker.title, _ending(code, by_us=worker.dump_requested))
            self._restarts[worker.place] = MIN_WORKER_LIFE_SECONDS - worker.age
        elif not self._stops:
            self._restarts[worker.place] = self._pause(worker.place) - worker.age
            self._count_failed_start(worker.place, f"a {worker.side or 'worker'} ended before it served")
            is_last = self._none_can_serve()
            then = "the server stops" if is_last else "it is replaced"
            log.error("%s %s before it served; %s", worker.title, _ending(code, by_us=worker.dump_requested), then)
            if is_last:
                self._give_up()
        self._on_exit(pid)

    def _check_workers(self, passed: float) -> None:
        for worker in self._workers.values():
            worker.age += passed
            beats = self._heartbeats.count(worker.place)
            if beats != worker.beats:
                worker.beats, worker.silent, worker.dump_requested = beats, 0.0, False
            else:
                worker.silent += passed
            is_ready = self._heartbeats.is_ready(worker.place)
            self._was_ready = self._was_ready or (is_ready and not worker.side)
            if is_ready and not worker.serves:
                worker.serves = True
                self._pauses.pop(worker.place, None)
                if worker.place in self._unstarted:
                    self._unstarted.remove(worker.place)
                    self._failures.recovered(TASK)
                log.info("%s serves", worker.title)
            if not is_ready and worker.age >= BLOCKED_SECONDS and not worker.slow_start:
                worker.slow_start = True
                log.warning("%s does not serve after %g s; does its store respond?", worker.title, BLOCKED_SECONDS)
            self._kill_if_hanging(worker, BLOCKED_SECONDS if is_ready else START_SECONDS)

    def _kill_if_hanging(self, worker: Worker, allowed: float) -> None:
        if worker.silent >= allowed and not worker.dump_requested:
            worker.dump_requested = True
            log.error("%s has done nothing for %g s; it is killed. It hangs here:", worker.title, allowed)
            self._machine.kill(worker.pid, DUMP_SIGNAL)
        elif worker.silent >= allowed + DUMP_SECONDS:
            self._machine.kill(worker.pid, signal.SIGKILL)

    def _stop(self) -> None:
        """Tell all workers to stop; the second time, at once."""
        self._stops = max(self._machine.stops, 1)
        self._listeners.close()
        grace = self._settings.shutdown_grace_seconds if self._stops == 1 else 0
        log.info("stopping; responses in flight may end within %g s", grace)
        self._stop_seconds_left = grace + STOP_SECONDS if self._stops == 1 else SECOND_STOP_SECONDS
        for worker in self._workers.values():
            if not worker.side or self._stops > 1:
                self._tell_to_stop(worker)
        self._stop_sides()

    def _stop_sides(self) -> None:
        """Tell the processes beside the workers to stop, if no worker is left."""
        for worker in self._workers.values():
            if not worker.side:
                return
        for worker in self._workers.values():
            if not worker.told_to_stop:
                self._stop_seconds_left = max(self._stop_seconds_left, SIDE_STOP_SECONDS)
                self._tell_to_stop(worker)

    def _tell_to_stop(self, worker: Worker) -> None:
        worker.told_to_stop = True
        self._machine.kill(worker.pid, signal.SIGTERM)

    def _kill_late(self, passed: float) -> None:
        self._stop_seconds_left -= passed
        if self._stop_seconds_left > 0:
            return
        for worker in self._workers.values():
            log.error("%s did not stop in time; it is killed", worker.title)
            self._machine.kill(worker.pid, signal.SIGKILL)
            self._exit_code = 1


def _ending(code: int, *, by_us: bool = False) -> str:
    """Return how a process ended, as text that follows its name; `by_us` if the supervisor killed it."""
    if code >= 0:
        return f"ended with exit code {code}"
    hint = "; has memory run out?" if code == -signal.SIGKILL and not by_us else ""
    return f"was killed by signal {-code} ({signal.strsignal(-code)}{hint})"
