"""A FakeProvider in a thread with a loop of its own, for tests whose other side blocks."""

import asyncio
import ssl
import threading
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
