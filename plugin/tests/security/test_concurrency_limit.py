"""A limit of what runs at once: who waits, and who is refused."""

import asyncio

import pytest

from opensearch_ml_stream.connectors.errors import Throttled
from opensearch_ml_stream.plugin.security.concurrency_limit import ConcurrencyLimit


async def hold(limit: ConcurrencyLimit, until: asyncio.Event, held: list[int], number: int) -> None:
    async with limit:
        held.append(number)
        await until.wait()


async def test_one_comes_after_the_other_and_more_than_may_wait_are_refused() -> None:
    limit, until, held = ConcurrencyLimit(2, 3, 60.0), asyncio.Event(), list[int]()
    tasks = [asyncio.create_task(hold(limit, until, held, number)) for number in range(6)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert held == [0, 1]
    with pytest.raises(Throttled):
        await tasks[5]
    until.set()
    await asyncio.gather(*tasks[:5])
    assert held == [0, 1, 2, 3, 4]


async def test_one_who_waits_too_long_or_leaves_takes_nobodys_place() -> None:
    limit, until, held = ConcurrencyLimit(1, 3, 0.01), asyncio.Event(), list[int]()
    first = asyncio.create_task(hold(limit, until, held, 1))
    await asyncio.sleep(0)
    leaving = asyncio.create_task(hold(limit, until, held, 2))
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(Throttled) as refused:
        await hold(limit, until, held, 3)
    assert refused.value.retry_after == "1"
    until.set()
    await first
    await hold(limit, until, held, 4)
    assert held == [1, 4]
