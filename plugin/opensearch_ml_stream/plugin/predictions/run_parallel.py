"""Run calls in parallel, at most so many at a time, with their results in the order of the calls."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


async def run_parallel(calls: Sequence[Callable[[], Awaitable[T]]], limit: int) -> list[T]:
    """Return the results of all calls in order, at most `limit` of them in flight; the first error cancels the rest."""
    if len(calls) == 1:
        return [await calls[0]()]
    semaphore = asyncio.Semaphore(limit)

    async def run(call: Callable[[], Awaitable[T]]) -> T:
        async with semaphore:
            return await call()

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run(call)) for call in calls]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
