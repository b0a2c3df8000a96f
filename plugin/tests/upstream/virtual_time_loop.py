"""An event loop whose clock starts at 0 and jumps to the next timer instead of waiting for it."""

import asyncio
import selectors

THREAD_SECONDS = 5  # how long a thread may take; a test whose tasks wait for one another fails then


class _Selector(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(THREAD_SECONDS if timeout is None else 0)
        if not ready:
            assert timeout is not None, "every task waits for another one"
            self.now += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109, as asyncio has it
        """Wait for the threads without a timer, to which the clock would jump."""
        await super().shutdown_default_executor()

    def pending_timers(self) -> int:
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        return sum(not timer.cancelled() for timer in scheduled)


def now() -> float:
    """Seconds since the test began."""
    return asyncio.get_running_loop().time()


def pending_timers() -> int:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    return loop.pending_timers()
