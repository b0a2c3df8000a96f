"""Run a blocking producer in a thread, and iterate over its items in the event loop."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from typing import Generic, TypeVar

_Item = TypeVar("_Item")

MOST_WAITING = 1024  # items that the thread may be ahead of the reader


class Cancelled(BaseException):
    """The reader has stopped. Raised by `put`; not an Exception, so that engines do not catch it."""


class _End:
    """The end of the items, with the error if there was one."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class _Channel(Generic[_Item]):
    """Passes items from one thread to the event loop."""

    def __init__(self, most_waiting: int) -> None:
        self.items: asyncio.Queue[_Item | _End] = asyncio.Queue()
        self.room = threading.Semaphore(most_waiting)
        self._loop = asyncio.get_running_loop()
        self._is_closed = False

    def put(self, item: _Item) -> None:
        """Pass an item to the reader, from the thread; wait for room, raise Cancelled once the reader has stopped."""
        if not self._is_closed:
            self.room.acquire()
        if self._is_closed:
            raise Cancelled
        self._loop.call_soon_threadsafe(self.items.put_nowait, item)

    def close(self) -> None:
        """Stop, from the event loop; a `put` that waits for room ends."""
        self._is_closed = True
        self.room.release()

    def run(self, produce: Callable[[Callable[[_Item], None]], None]) -> None:
        """Call `produce` in the thread, then put the end of the items."""
        error: BaseException | None = None
        if self._is_closed:  # closed while it waited for a thread
            return
        try:
            produce(self.put)
        except Cancelled:
            return
        except BaseException as raised:  # noqa: BLE001  # raised again where the items are read
            error = raised
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.items.put_nowait, _End(error))


async def in_thread(
    produce: Callable[[Callable[[_Item], None]], None], executor: Executor, most_waiting: int = MOST_WAITING
) -> AsyncGenerator[_Item, None]:
    """Yield what `produce(put)` puts, in a thread of the executor; raises what it raises.

    Where the caller closes the generator, `put` raises Cancelled the next time; the thread is not waited for.
    """
    channel: _Channel[_Item] = _Channel(most_waiting)
    future = executor.submit(channel.run, produce)
    try:
        while not isinstance(item := await channel.items.get(), _End):
            channel.room.release()
            yield item
        if item.error is not None:
            raise item.error
    finally:
        channel.close()
        future.cancel()
