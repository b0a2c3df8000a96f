"""Run several awaitables in parallel."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def run_parallel(calls: Sequence[Callable[[], Awaitable[T]]], limit: int) -> list[T]:
    """Return the results of all calls in their order, with at most `limit` of them in flight.

    The first error cancels the calls in flight; those that wait are not started.
    """
    if len(calls) == 1:
        return [await calls[0]()]
    waiting = deque(enumerate(calls))
    results: dict[int, T] = {}

    async def run_waiting() -> None:
        while waiting:
            number, call = waiting.popleft()
            try:
                results[number] = await call()
            except BaseException:
                waiting.clear()  # the group cancels the others a little later, when a next call may have begun
                raise

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(limit, len(calls))):
                group.create_task(run_waiting())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [results[number] for number in range(len(calls))]


async def wait_for_all(*tasks: asyncio.Task[Any]) -> None:
    """Wait for all tasks; raise the error of the first that has one. The caller's cancellation cancels them."""
    try:
        await asyncio.wait(tasks)
    finally:
        for task in tasks:
            task.cancel()
    errors = [task.exception() for task in tasks]
    for error in errors:
        if error is not None:
            raise error
