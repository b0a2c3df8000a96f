import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from opensearch_ml_stream.plugin.parallel import run_parallel, wait_for_all


async def after_steps(steps: int, result: str) -> str:
    for _ in range(steps):
        await asyncio.sleep(0)
    return result


async def test_results_are_in_the_order_of_the_calls_not_of_their_ends() -> None:
    calls = [partial(after_steps, steps, f"{steps} steps") for steps in (5, 1, 3)]
    assert await run_parallel(calls, 3) == ["5 steps", "1 steps", "3 steps"]


async def test_no_calls_have_no_results() -> None:
    assert await run_parallel([], 3) == []


@pytest.mark.parametrize("limit", [1, 2, 4])
async def test_as_many_calls_as_the_limit_allows_are_in_flight_and_never_more(limit: int) -> None:
    in_flight = 0
    most = 0

    async def call() -> None:
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        await asyncio.sleep(0)
        in_flight -= 1

    await run_parallel([call] * 9, limit)
    assert most == limit


async def test_the_first_error_is_raised_as_it_is_and_cancels_the_calls_in_flight() -> None:
    ended: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$") as raised:
        await run_parallel([waits, fails, waits], 3)
    assert ended == ["cancelled", "cancelled"]
    assert raised.value.__cause__ is None and raised.value.__suppress_context__


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_after_a_failure_no_call_that_waits_is_started(limit: int) -> None:
    started: list[str] = []

    async def fails() -> None:
        started.append("fails")
        await asyncio.sleep(0)
        raise ValueError("mine")

    async def succeeds_in_the_same_turn() -> None:
        started.append("succeeds")
        await asyncio.sleep(0)

    async def waits_its_turn() -> None:
        started.append("waited")

    calls = [fails, succeeds_in_the_same_turn, succeeds_in_the_same_turn][:limit]
    with pytest.raises(ValueError, match=r"^mine$"):
        await run_parallel([*calls, *[waits_its_turn] * 5], limit)
    assert "waited" not in started


async def test_a_single_call_runs_in_the_callers_own_task() -> None:
    async def call() -> asyncio.Task[None] | None:
        return asyncio.current_task()

    calls: list[Callable[[], Awaitable[asyncio.Task[None] | None]]] = [call]
    assert await run_parallel(calls, 8) == [asyncio.current_task()]


async def fail(error: Exception, after: asyncio.Event | None = None) -> None:
    if after is not None:
        await after.wait()
    raise error


async def test_the_first_error_in_order_counts_whichever_comes_first() -> None:
    last_failed = asyncio.Event()
    first, last = asyncio.create_task(fail(ValueError("first"), last_failed)), asyncio.create_task(fail(KeyError()))
    last.add_done_callback(lambda _: last_failed.set())
    with pytest.raises(ValueError, match=r"^first$"):
        await wait_for_all(first, last)


async def test_the_work_ends_with_the_one_who_waits_for_it() -> None:
    work = asyncio.create_task(asyncio.Event().wait())
    waiting = asyncio.create_task(wait_for_all(work))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting, work])
    assert work.cancelled()
