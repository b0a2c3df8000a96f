"""What runs in a thread: its items, its errors, and that it ends once nobody reads."""

import asyncio
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

import pytest

from opensearch_ml_stream.runtimes.threads import Cancelled, in_thread

Put = Callable[[int], None]


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1, "produce") as executor:
        yield executor


def waits(name: str) -> bool:
    """Return whether a thread of that name waits in Condition.wait, as Semaphore and Event do."""
    frames = sys._current_frames()
    top = [frames[thread.ident] for thread in threading.enumerate() if thread.name.startswith(name) and thread.ident]
    return any(frame.f_code is threading.Condition.wait.__code__ for frame in top)


async def test_items_come_in_their_order(executor: ThreadPoolExecutor) -> None:
    def produce(put: Put) -> None:
        for number in range(5000):
            put(number)

    assert [item async for item in in_thread(produce, executor)] == list(range(5000))


async def test_an_error_comes_behind_the_items_before_it(executor: ThreadPoolExecutor) -> None:
    def produce(put: Put) -> None:
        put(1)
        raise ValueError("broken")

    items = in_thread(produce, executor)
    assert await anext(items) == 1
    with pytest.raises(ValueError, match="broken"):
        await anext(items)


async def test_no_more_items_are_ahead_than_may_wait(executor: ThreadPoolExecutor) -> None:
    count, is_waiting = 0, threading.Event()

    def produce(put: Put) -> None:
        nonlocal count
        for count in range(100):
            if count == 5:
                is_waiting.set()
            put(count)

    async with aclosing(in_thread(produce, executor, most_waiting=4)) as items:
        assert await anext(items) == 0
        await asyncio.to_thread(is_waiting.wait)
        assert count == 5  # one taken, four wait, one in hand
        assert [item async for item in items] == list(range(1, 100))


@pytest.mark.parametrize("most_waiting", [4, 1000])  # the thread waits for room, or is in its work
async def test_put_raises_once_nobody_reads(executor: ThreadPoolExecutor, most_waiting: int) -> None:
    ends: list[str] = []
    may_go_on = threading.Event()

    def produce(put: Put) -> None:
        try:
            for number in range(100):
                put(number)
                if most_waiting > 100 and number == 10:
                    may_go_on.wait()
            ends.append("produced all")
        except Cancelled:
            ends.append("cancelled")
            raise

    items = in_thread(produce, executor, most_waiting)
    assert await anext(items) == 0
    while not waits("produce"):  # noqa: ASYNC110  # in a thread
        await asyncio.sleep(0)
    await items.aclose()
    may_go_on.set()
    await asyncio.to_thread(executor.shutdown)
    assert ends == ["cancelled"]


async def test_what_was_given_up_before_its_turn_does_not_run(executor: ThreadPoolExecutor) -> None:
    may_end = threading.Event()
    executor.submit(may_end.wait)
    ran: list[int] = []
    items: AsyncGenerator[int, None] = in_thread(lambda put: ran.append(1), executor)
    call = asyncio.ensure_future(anext(items))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    may_end.set()
    await asyncio.to_thread(executor.shutdown)
    assert ran == []
