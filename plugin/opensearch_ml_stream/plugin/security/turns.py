"""Turns: a few at the same time do what is expensive elsewhere, others wait a little, and the rest is turned away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from opensearch_ml_stream.connectors.errors import Throttled


class Turns:
    """At most `at_once` have a turn at the same time, and at most `waiting` wait for one, for `seconds` or any time."""

    def __init__(self, at_once: int, waiting: int, seconds: float | None) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._most_waiting = waiting
        self._seconds = seconds
        self._waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold a turn while the block runs; Throttled if too many wait already, or none comes in time."""
        await self._wait()
        try:
            yield
        finally:
            self._free.release()

    async def _wait(self) -> None:
        if self._waiting >= self._most_waiting:
            raise _too_many()
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                await self._free.acquire()
        except TimeoutError:
            raise _too_many() from None
        finally:
            self._waiting -= 1


def _too_many() -> Throttled:
    return Throttled("Too many logins at once; try again", retry_after="1")
