"""Workers are started, replaced when they die or hang, and stopped together; processes and clock are fakes."""

import errno
import logging
import signal
from collections.abc import Callable
from itertools import pairwise
from typing import cast

import pytest

from opensearch_ml_stream.plugin.server.listener import Listeners
from opensearch_ml_stream.plugin.server.processes import DUMP_SIGNAL, Heartbeats, Processes
from opensearch_ml_stream.plugin.server.supervisor import Supervisor
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.task_failures import TaskFailures
from tests.server.fake_machine import FakeMachine

STOP = [(1000, signal.SIGTERM)]


@pytest.fixture
def machine() -> FakeMachine:
    return FakeMachine()


def run(
    machine: FakeMachine,
    workers: int = 1,
    grace: float = 3,
    works: list[tuple[int, int]] | None = None,
    sides: tuple[str, ...] = (),
    failures: TaskFailures | None = None,
    on_exit: Callable[[int], None] | None = None,
) -> int:
    """The exit code; all events have happened."""
    supervisor = Supervisor(
        Settings(workers=workers, shutdown_grace_seconds=grace),
        cast(Processes, machine),
        cast(Heartbeats, machine),
        cast(Listeners, machine),
        work=lambda *arguments: works.append(arguments) if works is not None else None,
        on_exit=on_exit or machine.forgotten.append,
        clock=lambda: machine.now,
        failures=(failures or TaskFailures()).of(0),
        sides=sides,
    )
    code = supervisor.run()
    assert machine.is_closed, "a stopping server would let clients wait"
    assert machine.events == []
    return code


def test_all_workers_are_started_and_a_stop_ends_all(machine: FakeMachine) -> None:
    works: list[tuple[int, int]] = []
    machine.events = [*machine.passes(1), machine.asked_to_stop, *machine.passes(0.5)]
    assert run(machine, workers=3, works=works) == 0
    assert works == [(0, -1), (1, -1), (2, -1)]
    assert machine.signals == [(pid, signal.SIGTERM) for pid in (1000, 1001, 1002)]


def test_a_worker_that_dies_is_replaced_at_its_place(machine: FakeMachine, caplog: pytest.LogCaptureFixture) -> None:
    works: list[tuple[int, int]] = []
    machine.events = [
        *machine.passes(50), machine.dies(1000, -9), *machine.passes(0.5), machine.asked_to_stop, *machine.passes(0.5),
    ]  # fmt: skip
    with caplog.at_level(logging.ERROR):
        assert run(machine, workers=2, works=works) == 0
    assert works == [(0, -1), (1, -1), (0, -1)]
    assert sorted(pid for pid, _ in machine.signals) == [1001, 1002]
    assert caplog.messages == ["worker 1000 was killed by signal 9 (Killed; has memory run out?); it is replaced"]
    assert 1000 in machine.forgotten


def test_workers_that_die_at_once_are_replaced_one_a_second(machine: FakeMachine) -> None:
    counts: list[int] = []

    def count() -> None:
        counts.append(len(machine.started))

    machine.events = [*machine.passes(5), machine.dies(1000), machine.dies(1001), *machine.passes(0.5), count]
    machine.events += [*machine.passes(0.5), count, machine.asked_to_stop, *machine.passes(0.5)]
    run(machine)
    assert counts == [2, 3]


def test_a_server_whose_first_workers_cannot_serve_ends_with_1(
    machine: FakeMachine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.ready = False
    machine.events = [machine.dies(1001), *machine.passes(0.5), machine.dies(1000), *machine.passes(0.5)]
    with caplog.at_level(logging.ERROR):
        assert run(machine, workers=2, sides=("keeper",)) == 1
    assert caplog.messages == [
        "worker 1001 ended with exit code 1 before it served; it is replaced",
        "worker 1000 ended with exit code 1 before it served; the server stops",
    ]
    assert machine.signals == [(1002, signal.SIGTERM)], "the keeper"


def test_a_server_of_which_no_worker_can_be_started_says_so_and_ends_with_1(
    machine: FakeMachine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.refusals = [BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")] * 2
    with caplog.at_level(logging.ERROR):
        assert run(machine, workers=2) == 1
    assert caplog.messages == [
        "a worker cannot be started (Resource temporarily unavailable); it is tried again in 1 s",
        "a worker cannot be started (Resource temporarily unavailable); it is tried again in 1 s",
        "no worker can be started; the server stops",
    ]


def test_a_worker_that_cannot_be_started_is_due_again_with_growing_pauses_while_the_others_serve(
    machine: FakeMachine, caplog: pytest.LogCaptureFixture
) -> None:
    failures = TaskFailures(clock=lambda: machine.now)
    problems: list[list[str]] = []
    left: list[set[int]] = []

    def runs_out() -> None:
        machine.refusals += [BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")] * 3

    def look() -> None:
        problems.append(failures.problems())
        left.append(set(machine.suspended))

    machine.events = [
        *machine.passes(5), runs_out, machine.dies(1000), *machine.passes(6), look, *machine.passes(8), look,
        machine.asked_to_stop, *machine.passes(0.5),
    ]  # fmt: skip
    with caplog.at_level(logging.ERROR):
        assert run(machine, workers=2, failures=failures) == 0
    [*_, first, second, third, last] = machine.tries
    assert [second - first, third - second, last - third] == [1, 2, 4]
    assert "a worker cannot be started (Resource temporarily unavailable); it is tried again in 4 s" in caplog.messages
    assert len(machine.started) == 3
    assert 1001 in {pid for pid, _ in machine.signals}, "the other one served to the end"
    assert problems == [
        ["The background task supervisor has failed (BlockingIOError: Resource temporarily unavailable) and is tried "
         "again; see the log"],
        [],
    ]  # fmt: skip
    assert failures.counts() == {"supervisor": 3}
    assert left == [{0}, set()], "clients who come meanwhile are for the other one"


def test_a_place_whose_port_cannot_be_bound_again_now_gets_its_worker_later(
    machine: FakeMachine, caplog: pytest.LogCaptureFixture
) -> None:
    def runs_out() -> None:
        machine.refusals = [BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")]
        machine.bind_refusals = [OSError(errno.EMFILE, "Too many open files")]

    machine.events = [*machine.passes(5), runs_out, machine.dies(1000), *machine.passes(6)]
    machine.events += [machine.asked_to_stop, *machine.passes(0.5)]
    with caplog.at_level(logging.ERROR):
        assert run(machine, workers=2) == 0
    assert "a worker cannot be started (Too many open files); it is tried again in 2 s" in caplog.messages
    assert (len(machine.started), machine.suspended) == (3, set())


def test_a_worker_that_never_comes_to_serve_is_replaced_ever_later(machine: FakeMachine) -> None:
    def fails() -> None:
        machine.now += 0.5
        machine.ready = False
        for pid in machine.running.keys() - {1001}:
            machine.dies(pid)()

    failures = TaskFailures(clock=lambda: machine.now)
    machine.events = [*machine.passes(5), *[fails] * 200, machine.asked_to_stop, *machine.passes(0.5)]
    assert run(machine, workers=2, failures=failures) == 0
    assert failures.problems() == [
        "The background task supervisor has failed (a worker ended before it served) and is tried again; see the log"
    ]
    [_, _, *tries] = machine.tries
    pauses = [round(later - earlier) for earlier, later in pairwise(tries)]
    assert pauses[:6] == [1, 2, 4, 8, 16, 30]


@pytest.mark.breaks("supervisor")
@pytest.mark.parametrize("fails", ["forget", "wait"])
def test_the_supervisor_goes_on_when_something_fails_in_it(
    machine: FakeMachine, fails: str, caplog: pytest.LogCaptureFixture
) -> None:
    failures = TaskFailures(clock=lambda: machine.now)
    full = [OSError(errno.ENOSPC, "No space left on device")]

    def forget(pid: int) -> None:
        if full and fails == "forget":
            raise full.pop()

    def wait_fails() -> None:
        raise full.pop()

    machine.events = [*machine.passes(5), machine.dies(1000) if fails == "forget" else wait_fails]
    machine.events += [machine.dies(1001), *machine.passes(6), machine.asked_to_stop, *machine.passes(0.5)]
    with caplog.at_level(logging.ERROR):
        assert run(machine, workers=2, failures=failures, on_exit=forget) == 0
    [record] = [record for record in caplog.records if record.message == "the supervisor failed; it continues"]
    assert record.exc_info is not None
    assert len(machine.started) == (4 if fails == "forget" else 3)
    assert (failures.counts(), failures.problems()) == ({"supervisor": 1}, [])


def test_a_worker_that_ends_while_the_server_stops_is_not_replaced(machine: FakeMachine) -> None:
    machine.deaf = {1000, 1001}
    machine.events = [
        *machine.passes(2), machine.asked_to_stop, machine.dies(1000, 0), *machine.passes(0.5), machine.dies(1001, 0),
    ]  # fmt: skip
    assert run(machine, workers=2) == 0
    assert len(machine.started) == 2


def test_a_stop_before_a_replacement_is_due_starts_none(machine: FakeMachine) -> None:
    machine.events = [*machine.passes(0.5), machine.dies(1000), machine.asked_to_stop]
    assert run(machine) == 0
    assert len(machine.started) == 1


def test_a_worker_that_does_nothing_for_10_s_says_where_it_hangs_and_is_killed_and_replaced(
    machine: FakeMachine, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[list[tuple[int, int]]] = []

    def look() -> None:
        seen.append(list(machine.signals))

    machine.events = [
        *machine.passes(2), machine.hangs(1000), *machine.passes(9), look, *machine.passes(1.5), look,
        *machine.passes(1.5), look, machine.asked_to_stop, *machine.passes(0.5),
    ]  # fmt: skip
    with caplog.at_level(logging.ERROR):
        assert run(machine) == 0
    assert seen == [[], [(1000, DUMP_SIGNAL)], [(1000, DUMP_SIGNAL), (1000, signal.SIGKILL)]]
    assert "worker 1000 has done nothing for 10 s; it is killed. It hangs here:" in caplog.messages
    assert len(machine.started) == 2


def test_a_worker_that_goes_on_while_it_says_where_it_hangs_is_spared(machine: FakeMachine) -> None:
    def goes_on() -> None:
        machine.hanging.clear()

    machine.events = [
        *machine.passes(2), machine.hangs(1000), *machine.passes(10.5), goes_on, *machine.passes(9),
        machine.asked_to_stop, *machine.passes(0.5),
    ]  # fmt: skip
    assert run(machine) == 0
    assert machine.signals == [(1000, DUMP_SIGNAL), *STOP]


def test_nobody_is_killed_because_the_machine_slept(machine: FakeMachine) -> None:
    def sleeps() -> None:
        machine.now += 3600

    machine.events = [*machine.passes(2), machine.hangs(1000), sleeps, sleeps, *machine.passes(2)]
    machine.events += [lambda: machine.hanging.clear(), *machine.passes(2), machine.asked_to_stop, *machine.passes(0.5)]
    assert run(machine) == 0
    assert machine.signals == STOP


def test_a_worker_may_block_for_a_minute_while_it_starts_and_is_spoken_of(
    machine: FakeMachine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.ready = False
    machine.hanging = {1000}
    alive: list[bool] = []
    machine.events = [
        *machine.passes(59), lambda: alive.append(1000 in machine.running), *machine.passes(2),
        lambda: alive.append(1000 in machine.running),
    ]  # fmt: skip
    with caplog.at_level(logging.WARNING):
        assert run(machine) == 1
    assert alive == [True, False]
    assert caplog.messages[0] == "worker 1000 does not serve after 10 s; does its store respond?"
    assert sum("does not serve" in message for message in caplog.messages) == 1


def test_what_has_not_stopped_after_the_grace_time_is_killed(
    machine: FakeMachine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.deaf = {1000}
    began: list[float] = []
    machine.events = [*machine.passes(2), machine.asked_to_stop, lambda: began.append(machine.now), *machine.passes(8)]
    with caplog.at_level(logging.ERROR):
        assert run(machine) == 1
    assert machine.signals == [*STOP, (1000, signal.SIGKILL)]
    assert 7 <= machine.now - began[0] <= 8  # the grace of 3 s and 5 s
    assert caplog.messages == ["worker 1000 did not stop in time; it is killed"]


def test_a_second_signal_ends_all_at_once(machine: FakeMachine) -> None:
    machine.deaf = {1000}
    machine.events = [*machine.passes(2), machine.asked_to_stop, machine.asked_to_stop, *machine.passes(1.5)]
    assert run(machine, grace=60) == 1
    assert machine.signals == [*STOP, *STOP, (1000, signal.SIGKILL)]


def test_a_process_that_is_not_ours_ends_without_a_word(machine: FakeMachine, caplog: pytest.LogCaptureFixture) -> None:
    machine.events = [*machine.passes(2), lambda: machine._ended.append((7, 1)), machine.asked_to_stop]
    machine.events += machine.passes(0.5)
    assert run(machine) == 0
    assert caplog.messages == []


def test_the_log_says_who_serves_that_the_server_stops_and_that_it_has_stopped(
    machine: FakeMachine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.events = [
        *machine.passes(2), machine.dies(1000), *machine.passes(2), machine.asked_to_stop, *machine.passes(0.5),
    ]  # fmt: skip
    with caplog.at_level(logging.INFO):
        assert run(machine) == 0
    assert caplog.messages == [
        "worker 1000 serves",
        "worker 1000 ended with exit code 1; it is replaced",
        "worker 1001 serves",
        "stopping; responses in flight may end within 3 s",
        "stopped",
    ]


@pytest.mark.parametrize(
    ("code", "ending"), [(-15, "was killed by signal 15 (Terminated)"), (-40, "was killed by signal 40 (Real-time")]
)
def test_a_worker_that_a_signal_ended_is_said_to_be_killed(
    machine: FakeMachine, caplog: pytest.LogCaptureFixture, code: int, ending: str
) -> None:
    machine.events = [*machine.passes(2), machine.dies(1000, code), machine.asked_to_stop, *machine.passes(0.5)]
    with caplog.at_level(logging.ERROR):
        assert run(machine) == 0
    assert ending in caplog.text


def test_the_keeper_of_models_is_replaced_as_a_worker_and_told_to_stop_when_no_worker_is_left(
    machine: FakeMachine, caplog: pytest.LogCaptureFixture
) -> None:
    works: list[tuple[int, int]] = []
    machine.deaf = {1000}
    machine.events = [
        *machine.passes(5), machine.dies(1001, -9), *machine.passes(0.5), machine.asked_to_stop, *machine.passes(1),
        machine.dies(1000, 0), *machine.passes(0.5),
    ]  # fmt: skip
    with caplog.at_level(logging.ERROR):
        assert run(machine, works=works, sides=("keeper",)) == 0
    assert works == [(0, -1), (1, -1), (1, -1)]
    assert machine.signals == [(1000, signal.SIGTERM), (1002, signal.SIGTERM)]
    assert caplog.messages == ["keeper 1001 was killed by signal 9 (Killed; has memory run out?); it is replaced"]


def test_a_second_stop_does_not_wait_for_the_workers_before_the_keeper(machine: FakeMachine) -> None:
    machine.deaf = {1000, 1001}
    machine.events = [
        *machine.passes(1), machine.asked_to_stop, *machine.passes(0.5), machine.asked_to_stop, *machine.passes(1.5),
    ]  # fmt: skip
    assert run(machine, sides=("keeper",)) == 1
    terms = [pid for pid, number in machine.signals if number == signal.SIGTERM]
    assert terms == [1000, 1000, 1001]
    assert [pid for pid, number in machine.signals if number == signal.SIGKILL] == [1000, 1001]
