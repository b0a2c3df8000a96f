"""Time in these tests is that of a loop whose clock jumps to the next timer: what takes 30 s passes at once."""

import asyncio
from collections.abc import Callable, Mapping

from tests.upstream.virtual_time_loop import VirtualTimeLoop


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual time": VirtualTimeLoop}
