"""Calls made beside each other whose results come in the order of the calls."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


async def run_in_order(calls: Sequence[Callable[[], Awaitable[T]]], parallel: int) -> list[T]:
    """The results of all calls, at most `parallel` of them under way at a time; the first failure ends the others."""
    if len(calls) == 1:
        return [await calls[0]()]
    free = asyncio.Semaphore(parallel)

    async def one(call: Callable[[], Awaitable[T]]) -> T:
        async with free:
            return await call()

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(call)) for call in calls]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
