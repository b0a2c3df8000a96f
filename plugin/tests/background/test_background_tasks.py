"""Turns of a task: when they are taken, and what is told of those that fail."""

import asyncio
import gc
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from opensearch_ml_stream.plugin.background_tasks import FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS, BackgroundTasks
from opensearch_ml_stream.plugin.logs.configuration import TextFormat
from opensearch_ml_stream.plugin.task_failures import SOUND_SECONDS, TaskFailures
from tests.upstream.virtual_time_loop import VirtualTimeLoop, now


def in_virtual_time(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(test())


class Turns:
    """A task that fails as long as `error` is set; `taken` is when it took its turns."""

    def __init__(self, seconds: float | None = 1.0) -> None:
        self.seconds = seconds
        self.error: Callable[[], BaseException] | None = None
        self.taken: list[float] = []

    async def __call__(self) -> float | None:
        self.taken.append(round(now(), 3))
        if self.error is not None:
            raise self.error()
        return self.seconds


def test_turns_are_taken_while_the_block_runs() -> None:
    async def run() -> None:
        turns = Turns()
        async with BackgroundTasks().running("task", turns, after=2):
            await asyncio.sleep(4.5)
        await asyncio.sleep(10)
        assert turns.taken == [2, 3, 4]

    in_virtual_time(run)


def test_a_task_without_a_next_turn_has_ended() -> None:
    async def run() -> None:
        turns = Turns(seconds=None)
        await BackgroundTasks().start("task", turns)
        assert turns.taken == [0]

    in_virtual_time(run)


class Panic(BaseException):
    """As what a library in Rust raises."""


@pytest.mark.parametrize("error", [KeyError, asyncio.CancelledError, TimeoutError, Panic, SystemExit, RecursionError])
def test_a_task_that_fails_is_tried_again_with_growing_pauses_until_it_goes_on(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    """A CancelledError that nobody meant for the task is one that it got of another."""

    async def run() -> None:
        background, turns = BackgroundTasks(), Turns()
        turns.error = error
        async with background.running("task", turns):
            await asyncio.sleep(120)
            turns.error = None
            pauses = [round(later - earlier, 3) for earlier, later in zip(turns.taken, turns.taken[1:], strict=False)]
            assert pauses[:10] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, MAX_PAUSE_SECONDS]
            failed = len(turns.taken)
            await asyncio.sleep(MAX_PAUSE_SECONDS + 1)
        assert len(turns.taken) > failed
        assert background.failures.counts() == {"task": failed}
        assert caplog.messages.count("background task task: failed; it is tried again in 0.8 s") == 1
        assert caplog.messages.count("background task task: works again") == 1

    caplog.set_level(logging.INFO)
    in_virtual_time(run)


def test_a_turn_that_keeps_to_itself_that_it_is_cancelled_is_the_last() -> None:
    async def run() -> None:
        taken = 0

        async def turn() -> float:
            nonlocal taken
            taken += 1
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)
            return 0

        async with asyncio.timeout(1):
            async with BackgroundTasks().running("task", turn):
                await asyncio.sleep(0.5)
        assert taken == 1

    in_virtual_time(run)


def test_pauses_begin_anew_when_no_turn_has_failed_for_a_while() -> None:
    async def run() -> None:
        background, turns = BackgroundTasks(), Turns(seconds=SOUND_SECONDS)
        for _ in range(2):
            turns.taken.clear()
            turns.error = KeyError
            async with background.running("task", turns):
                await asyncio.sleep(1)
                turns.error = None
                await asyncio.sleep(2 * SOUND_SECONDS)
                turns.error = KeyError
                await asyncio.sleep(2 * SOUND_SECONDS)
            first = [later - earlier for earlier, later in zip(turns.taken, turns.taken[1:], strict=False)]
            assert [round(pause, 3) for pause in first].count(FIRST_PAUSE_SECONDS) == 2

    in_virtual_time(run)


def test_a_failure_is_a_problem_until_the_task_has_gone_well_for_a_while() -> None:
    async def run() -> None:
        background, turns = BackgroundTasks(TaskFailures(clock=now)), Turns()
        turns.error = lambda: OSError(28, "No space left on device")
        error = "OSError: No space left on device"
        problem = f"The background task task has failed ({error}) and is tried again; see the log"
        async with background.running("task", turns), background.running("other", Turns()):
            await asyncio.sleep(60)
            assert background.failures.problems() == [problem]
            turns.error = None
            await asyncio.sleep(MAX_PAUSE_SECONDS + SOUND_SECONDS)
            assert background.failures.problems() == []
            turns.error = KeyError
            await asyncio.sleep(60)
        await asyncio.sleep(MAX_PAUSE_SECONDS + SOUND_SECONDS)
        assert background.failures.problems() == [], "it has ended"

    in_virtual_time(run)


def test_a_turn_after_a_failure_that_has_no_end_is_a_good_one() -> None:
    async def run() -> None:
        background, turns = BackgroundTasks(TaskFailures(clock=now)), Turns()
        turns.error = KeyError

        async def serve() -> float | None:
            if turns.error is None:
                await asyncio.sleep(3600)
            return await turns()

        async with background.running("task", serve):
            await asyncio.sleep(1)
            turns.error = None
            await asyncio.sleep(MAX_PAUSE_SECONDS + SOUND_SECONDS)
            assert background.failures.problems() == []

    in_virtual_time(run)


def test_the_failures_of_all_processes_are_counted_together_and_outlive_one_of_them() -> None:
    failures = TaskFailures(places=2)
    for place in (0, 1):
        failures.of(place).failed("settings", KeyError())
    assert failures.counts() == {"settings": 2}
    BackgroundTasks(failures, 0).failures.of(0).register("settings")  # of the process that takes the place
    assert failures.counts() == {"settings": 2}
    [count, *_] = [fails for _, _, _, fails, _ in failures.of(0).tasks()]
    assert count == 0


def test_more_tasks_than_there_are_cells_are_counted_together() -> None:
    failures = TaskFailures()
    for number in range(100):
        failures.of(0).failed(f"task {number}", KeyError())
    assert sum(failures.counts().values()) == 100


async def quote(prompt: str) -> None:
    raise KeyError(prompt)


async def test_a_task_that_nobody_awaited_is_logged_without_what_its_error_quotes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asyncio.get_running_loop().set_exception_handler(BackgroundTasks().loop_failed)
    task = asyncio.create_task(quote("my secret prompt"))
    await asyncio.wait([task])
    del task
    gc.collect()
    [record] = caplog.records
    line = TextFormat().format(record)
    assert record.levelno == logging.ERROR and "KeyError" in line and "in quote" in line
    assert "secret" not in line


async def test_an_error_without_an_exception_is_logged_in_the_loops_words(caplog: pytest.LogCaptureFixture) -> None:
    BackgroundTasks().loop_failed(
        asyncio.get_running_loop(), {"message": "Task was destroyed but it is pending!", "task": "secret"}
    )
    assert caplog.messages == ["internal error: Task was destroyed but it is pending!"]
