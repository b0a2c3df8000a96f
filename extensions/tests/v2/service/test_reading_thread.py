"""Where requests are read: small ones at once, large ones one after the other beside the event loop."""

import asyncio
import threading

from opensearch_ml_stream.extensions.v2.service.reading_thread import MAX_BYTES_AT_ONCE, ReadingThread


async def test_small_requests_are_read_at_once_and_large_ones_in_a_thread() -> None:
    reading = ReadingThread()
    here = threading.get_ident()
    assert await reading.run(MAX_BYTES_AT_ONCE, threading.get_ident) == here
    assert await reading.run(MAX_BYTES_AT_ONCE + 1, threading.get_ident) != here


async def test_one_large_request_is_read_at_a_time_while_the_event_loop_turns() -> None:
    reading = ReadingThread()
    go_on = threading.Semaphore(0)
    reads: list[str] = []
    loop, has_begun = asyncio.get_running_loop(), asyncio.Event()

    def read() -> None:
        reads.append("begun")
        loop.call_soon_threadsafe(has_begun.set)
        go_on.acquire()
        reads.append("ended")

    both = asyncio.gather(*[reading.run(MAX_BYTES_AT_ONCE + 1, read) for _ in range(2)])
    await has_begun.wait()
    assert reads == ["begun"]
    go_on.release(2)
    await both
    assert reads == ["begun", "ended"] * 2
