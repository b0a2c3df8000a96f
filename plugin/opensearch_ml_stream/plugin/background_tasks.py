"""Background tasks: work that runs beside requests and that no request awaits.

Every such task is started here, so that a failure is logged at once, counted, shown by `/_health/ready`, and the task
tried again. `integration_tests/structure/test_background_tasks.py` finds tasks that are started elsewhere.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from opensearch_ml_stream.plugin.logs.configuration import KIND
from opensearch_ml_stream.plugin.task_failures import SOUND_SECONDS, ProcessFailures, TaskFailures

FIRST_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 30.0

Turn = Callable[[], Awaitable[float | None]]
"""One run of a task's work; it returns the seconds until the next one, or None if there is none."""

log = logging.getLogger("opensearch_ml_stream")


class BackgroundTasks:
    """The background tasks of one process; `failures` counts the failures in all processes.

    A task takes turns. A turn that raises is repeated after a pause, which doubles up to MAX_PAUSE_SECONDS and starts
    over after SOUND_SECONDS without a failure.
    """

    def __init__(self, failures: TaskFailures | None = None, place: int = 0) -> None:
        self.failures = TaskFailures() if failures is None else failures
        self._own: ProcessFailures = self.failures.of(place)
        self._own.forget()
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self, name: str, turn: Turn, *, after: float = 0.0) -> AsyncIterator[None]:
        """Take turns while the block runs, the first after `after` seconds."""
        task = self.start(name, turn, after=after)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    def start(self, name: str, turn: Turn, *, after: float = 0.0) -> asyncio.Task[None]:
        """Take turns until one returns None or the task is cancelled. There may be only a few different names."""
        task = asyncio.create_task(self._run(name, turn, after), name=name)
        self._tasks.add(task)  # the loop itself keeps no task alive
        task.add_done_callback(self._tasks.discard)
        return task

    def count(self, name: str, error: BaseException | str) -> None:
        """Count a single failure that the caller has logged; `error` is an exception or a name."""
        self._own.failed(name, error)
        self._own.recovered(name)

    def loop_failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log and count an error in the event loop itself, such as in a callback; for `loop.set_exception_handler`.

        asyncio's own handler logs tasks and arguments, which may quote a request. This one logs an exception's type and
        lines of code, or the loop's message where there is no exception.
        """
        error: BaseException | None = context.get("exception")
        if error is None:
            log.error("internal error: %s", context["message"])
            return
        log.error("internal error outside of a request", exc_info=error, extra={KIND: type(error)})
        if not isinstance(error, OSError):  # an OSError is of a connection
            self.count("event loop", error)

    async def _run(self, name: str, turn: Turn, after: float) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        health = _Health(name, self._own, loop)
        seconds: float | None = after
        try:
            while seconds is not None:
                await asyncio.sleep(seconds)
                try:
                    with health.watching():
                        seconds = await turn()
                except (GeneratorExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # libraries in Rust raise a panic as one, and nobody awaits this task
                    if task.cancelling():
                        raise
                    seconds = health.failed(error)
                else:
                    if task.cancelling():  # and the turn has kept that to itself
                        return
                    health.recovered()
        finally:
            health.ended()


class _Health:
    """Whether one task is failing, and the pause before it is tried again."""

    def __init__(self, name: str, counts: ProcessFailures, loop: asyncio.AbstractEventLoop) -> None:
        self._name = name
        self._counts = counts
        self._loop = loop
        self._is_failing = False
        self._failed_at = float("-inf")
        self._pause = FIRST_PAUSE_SECONDS
        counts.register(name)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count a turn as good when it has run for SOUND_SECONDS after a failure: it may be a long one."""
        timer = self._loop.call_later(SOUND_SECONDS, self.recovered) if self._is_failing else None
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()

    def failed(self, error: BaseException) -> float:
        """Log and count a failure; return the seconds until the next turn."""
        now = self._loop.time()
        if not self._is_failing and now - self._failed_at >= SOUND_SECONDS:
            self._pause = FIRST_PAUSE_SECONDS
        pause, self._pause = self._pause, min(2 * self._pause, MAX_PAUSE_SECONDS)
        kind = {KIND: (self._name, type(error))}
        log.error(
            "background task %s: failed; it is tried again in %g s", self._name, pause, exc_info=error, extra=kind
        )
        self._counts.failed(self._name, error, again=self._is_failing)
        self._is_failing, self._failed_at = True, now
        return pause

    def recovered(self) -> None:
        """Log that the task works again, if it has failed before."""
        if self._is_failing:
            log.info("background task %s: works again", self._name)
        self.ended()

    def ended(self) -> None:
        """Note that the task is not failing any more."""
        if self._is_failing:
            self._is_failing = False
            self._counts.recovered(self._name)
