"""ConcurrencyLimit: limits how many logins are checked at a time; some may wait, and the rest are refused."""

import asyncio

from opensearch_ml_stream.connectors.errors import Throttled


class ConcurrencyLimit:
    """An async context manager: at most `at_once` are inside, and at most `waiting` wait, for `seconds` or any time.

    Entering raises Throttled if too many wait already, or if the time is up.
    """

    def __init__(self, at_once: int, waiting: int, seconds: float | None) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._most_waiting = waiting
        self._seconds = seconds
        self._waiting = 0

    async def __aenter__(self) -> None:
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

    async def __aexit__(self, *_: object) -> None:
        self._free.release()


def _too_many() -> Throttled:
    return Throttled("Too many logins at once; try again", retry_after="1")
