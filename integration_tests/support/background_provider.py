"""A FakeProvider in a thread with a loop of its own, for tests whose other side blocks."""

import asyncio
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from integration_tests.support.fake_provider import FakeProvider, Request, Script


@contextmanager
def background_provider(
    script: Script | Callable[[Request], Script], tls: ssl.SSLContext | None = None
) -> Iterator[FakeProvider]:
    """The running provider; read its attributes, but await nothing of it."""
    provider = FakeProvider(script, tls)
    started = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with provider:
            started.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    started.wait()
    try:
        yield provider
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def left_within(provider: FakeProvider, seconds: float) -> bool:
    """Whether the caller hangs up within that time."""
    deadline = time.monotonic() + seconds
    while not provider.left.is_set() and time.monotonic() < deadline:
        time.sleep(0.005)
    return provider.left.is_set()
