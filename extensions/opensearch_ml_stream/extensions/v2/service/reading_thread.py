"""A thread that reads large requests, so that streams go on: Python lets the event loop run every 5 ms meanwhile."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

MAX_BYTES_AT_ONCE = 64 * 1024  # of a request that is read without it

_T = TypeVar("_T")


class ReadingThread:
    """Reads one request at a time: a worker holds the values of one, whatever comes at once."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "reading")

    async def run(self, size: int, read: Callable[[], _T]) -> _T:
        """Return what `read` returns for a request of `size` bytes."""
        if size <= MAX_BYTES_AT_ONCE:
            return read()
        return await asyncio.get_running_loop().run_in_executor(self._thread, read)
