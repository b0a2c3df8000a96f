"""Work that is done at the same time."""

import asyncio

import pytest

from opensearch_ml_stream.plugin.all_done import all_done


async def fail(error: Exception, after: asyncio.Event | None = None) -> None:
    if after is not None:
        await after.wait()
    raise error


async def test_the_first_error_in_order_counts_whichever_comes_first() -> None:
    last_failed = asyncio.Event()
    first, last = asyncio.create_task(fail(ValueError("first"), last_failed)), asyncio.create_task(fail(KeyError()))
    last.add_done_callback(lambda _: last_failed.set())
    with pytest.raises(ValueError, match=r"^first$"):
        await all_done(first, last)


async def test_the_work_ends_with_the_one_who_waits_for_it() -> None:
    work = asyncio.create_task(asyncio.Event().wait())
    waiting = asyncio.create_task(all_done(work))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting, work])
    assert work.cancelled()
