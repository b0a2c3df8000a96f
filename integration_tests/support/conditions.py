"""Waiting for a condition, in place of fixed sleeps and of deadlines that a busy machine misses."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

# Less than the time that a test may take, so that a failure names the condition.
PATIENCE_SECONDS = 50.0
_POLL_SECONDS = 0.01
# A single look at the condition counts for no more than this, however long the machine took over it.
_LOOK_SECONDS = 0.25

Condition = Callable[[], object]
AsyncCondition = Callable[[], object | Awaitable[object]]


def eventually(condition: Condition, seconds: float = PATIENCE_SECONDS) -> None:
    """Returns once the condition is true; AssertionError if it is not within a generous deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not true within {seconds:g} s: {_source(condition)}"
        time.sleep(_POLL_SECONDS)


async def eventually_async(condition: AsyncCondition, seconds: float = PATIENCE_SECONDS) -> None:
    """As `eventually`, while the event loop runs on; the condition may be a coroutine function."""
    deadline = time.monotonic() + seconds
    await asyncio.sleep(0)  # what has arrived by now is handled first
    while not await _value(condition):
        assert time.monotonic() < deadline, f"not true within {seconds:g} s: {_source(condition)}"
        await asyncio.sleep(_POLL_SECONDS)


def promptly(condition: Condition, seconds: float) -> None:
    """For what is promised within `seconds`: AssertionError if the condition takes longer to be true.

    A look that stalls, since the machine is busy, counts for a quarter of a second at most.
    """
    waited = 0.0
    while True:
        began = time.monotonic()
        if condition():
            return
        assert waited < seconds, f"promised within {seconds:g} s: {_source(condition)}"
        time.sleep(_POLL_SECONDS)
        waited += min(time.monotonic() - began, _LOOK_SECONDS)


async def steady(value: Callable[[], float], seconds: float = 0.5, tolerance: float = 0) -> None:
    """Returns once the value has been the same, within the tolerance, for that long; AssertionError if it never is."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    last, since = value(), time.monotonic()
    while time.monotonic() - since < seconds:
        assert time.monotonic() < deadline, f"it goes on changing: {last}"
        await asyncio.sleep(_POLL_SECONDS)
        if abs((now := value()) - last) > tolerance:
            last, since = now, time.monotonic()


async def _value(condition: AsyncCondition) -> object:
    value = condition()
    return await value if inspect.isawaitable(value) else value


def _source(condition: Callable[[], object]) -> str:
    return (
        f"{condition.__qualname__} ({condition.__module__})" if hasattr(condition, "__qualname__") else repr(condition)
    )
