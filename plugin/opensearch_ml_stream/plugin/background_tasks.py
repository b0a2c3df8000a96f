"""Work that goes on beside requests: none of it ends unseen.

Every task that nobody awaits is started here, so that what fails in it is logged at once, counted, shown by
`/_health/ready`, and tried again (`integration_tests/structure/test_background_tasks.py` finds any other).
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from opensearch_ml_stream.plugin.logs.flood_filter import KIND
from opensearch_ml_stream.plugin.task_failures import SOUND_SECONDS, ProcessFailures, TaskFailures

FIRST_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 30.0

Turn = Callable[[], Awaitable[float | None]]
"""One turn of a task; it returns the seconds until the next turn, or None if there is none."""

log = logging.getLogger("opensearch_ml_stream")


class BackgroundTasks:
    """The background tasks of one process; `failures` counts what fails in them, here and in all other processes.

    A task is turns of work. One that raises is taken again after a pause, which doubles up to MAX_PAUSE_SECONDS and
    begins anew when no turn has failed for SOUND_SECONDS.
    """

    def __init__(self, failures: TaskFailures | None = None, place: int = 0) -> None:
        self.failures = TaskFailures() if failures is None else failures
        self._own: ProcessFailures = self.failures.of(place)
        self._own.forget()
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self, name: str, turn: Turn, *, after: float = 0.0) -> AsyncIterator[None]:
        """Take turn after turn while the block runs, the first after so many seconds."""
        task = self.start(name, turn, after=after)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    def start(self, name: str, turn: Turn, *, after: float = 0.0) -> asyncio.Task[None]:
        """Take turn after turn until one returns None, or the task is cancelled. The names must be few."""
        task = asyncio.create_task(self._run(name, turn, after), name=name)
        self._tasks.add(task)  # the loop itself keeps no task alive
        task.add_done_callback(self._tasks.discard)
        return task

    def count(self, name: str, error: BaseException | str) -> None:
        """Count what has failed once, and is logged where it was caught; `error` may be the name of one."""
        self._own.failed(name, error)
        self._own.recovered(name)

    def loop_failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log and count what fails in the event loop itself, as in a callback; for `loop.set_exception_handler`.

        The default of that shows tasks and arguments, which quote the exception's message or the bytes of a request. Of
        an exception its type and lines of code are logged, of anything else what the loop says of it.
        """
        error: BaseException | None = context.get("exception")
        if error is None:
            log.error("internal error: %s", context["message"])
            return
        log.error("internal error outside of a request", exc_info=error, extra={KIND: type(error)})
        if isinstance(error, Exception) and not isinstance(error, OSError):  # which is a connection's
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
                except (Exception, asyncio.CancelledError) as error:
                    if task.cancelling():
                        raise
                    seconds = health.failed(error)
                else:
                    health.recovered()
        finally:
            health.ended()


class _Health:
    """Whether one task fails now, and the pause until it is tried again."""

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
        """Take a turn after a failure for a good one when it has gone on for SOUND_SECONDS, as it may be a long one."""
        timer = self._loop.call_later(SOUND_SECONDS, self.recovered) if self._is_failing else None
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()

    def failed(self, error: BaseException) -> float:
        """Tell of a failure; return the seconds until the next turn."""
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
        """Tell that a turn has gone well, if one has failed before."""
        if self._is_failing:
            log.info("background task %s: goes on", self._name)
        self.ended()

    def ended(self) -> None:
        """Note that nothing fails any more."""
        if self._is_failing:
            self._is_failing = False
            self._counts.recovered(self._name)
