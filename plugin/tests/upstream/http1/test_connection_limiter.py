"""A connector uses no more connections than it may, and who waits for one is served in turn."""

import asyncio

import pytest

from opensearch_ml_stream.connectors.errors import Throttled
from opensearch_ml_stream.plugin.upstream.http1.connection_limiter import ConnectionLimiter
from tests.upstream.virtual_time_loop import now, pending_timers

KEY = "connector"


class Queue:
    """Callers that wait for a connection, and those that have one, in the order of getting it."""

    def __init__(self, limiter: ConnectionLimiter, limit: int) -> None:
        self.served: list[str] = []
        self._limiter = limiter
        self._limit = limit

    async def add(self, name: str, wait: float = 10) -> asyncio.Task[None]:
        async def acquire() -> None:
            await self._limiter.acquire(KEY, self._limit, wait)
            self.served.append(name)

        task = asyncio.create_task(acquire())
        await asyncio.sleep(0)
        return task


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_connection_is_acquired_while_the_limit_allows() -> None:
    limiter = ConnectionLimiter()
    assert limiter.acquired(KEY) == 0
    assert [limiter.try_acquire(KEY, 2) for _ in range(3)] == [True, True, False]
    assert limiter.acquired(KEY) == 2
    limiter.release(KEY, 2)
    assert limiter.acquired(KEY) == 1
    assert limiter.try_acquire(KEY, 2)


def test_connectors_have_limits_of_their_own() -> None:
    limiter = ConnectionLimiter()
    assert limiter.try_acquire(KEY, 1)
    assert limiter.try_acquire("another", 1)
    limiter.release("another", 1)
    assert (limiter.acquired(KEY), limiter.acquired("another")) == (1, 0)
    assert not limiter.try_acquire(KEY, 1)


def test_a_connector_without_connections_takes_no_memory() -> None:
    limiter = ConnectionLimiter()
    limiter.try_acquire(KEY, 2)
    limiter.try_acquire(KEY, 2)
    limiter.release(KEY, 2)
    assert list(limiter._shares) == [KEY]
    limiter.release(KEY, 2)
    assert limiter._shares == {}


async def test_a_free_connection_costs_no_wait() -> None:
    limiter = ConnectionLimiter()
    await limiter.acquire(KEY, 1, 0)
    assert (limiter.acquired(KEY), now(), pending_timers()) == (1, 0, 0)


async def test_who_waits_longest_is_served_first() -> None:
    limiter = ConnectionLimiter()
    limiter.try_acquire(KEY, 1)
    queue = Queue(limiter, 1)
    for name in ("first", "second", "third"):
        await queue.add(name)
    for count in range(3):
        assert len(queue.served) == count
        limiter.release(KEY, 1)
        assert limiter.acquired(KEY) == 1  # handed over at once, so that no one comes between
        assert not limiter.try_acquire(KEY, 1)
        await settle()
    assert queue.served == ["first", "second", "third"]
    limiter.release(KEY, 1)
    assert limiter._shares == {}
    assert pending_timers() == 0


async def test_no_one_overtakes_those_who_wait() -> None:
    limiter = ConnectionLimiter()
    limiter.try_acquire(KEY, 1)
    task = await Queue(limiter, 1).add("waiting")
    assert not limiter.try_acquire(KEY, 2)
    assert limiter.acquired(KEY) == 1
    task.cancel()


async def test_who_gets_no_connection_in_time_is_throttled() -> None:
    limiter = ConnectionLimiter()
    limiter.try_acquire(KEY, 2)
    limiter.try_acquire(KEY, 2)
    with pytest.raises(Throttled) as raised:
        await limiter.acquire(KEY, 2, 1.5)
    assert now() == 1.5
    assert (raised.value.status, raised.value.retry_after) == (429, "1")
    assert raised.value.reason == (
        "Connection pool timeout: all 2 connections of the connector were busy for 1.5 s. Raise max_connection or "
        "connection_timeout in the connector's client_config, or send less"
    )
    assert limiter.acquired(KEY) == 2
    assert limiter.try_acquire(KEY, 3)  # no one waits any more
    limiter.release(KEY, 3)
    limiter.release(KEY, 2)
    assert limiter.acquired(KEY) == 1
    assert limiter.try_acquire(KEY, 2)


async def test_who_gets_a_connection_at_the_very_moment_of_giving_up_hands_it_on() -> None:
    limiter = ConnectionLimiter()
    limiter.try_acquire(KEY, 1)
    queue = Queue(limiter, 1)
    asyncio.get_running_loop().call_at(5, limiter.release, KEY, 1)
    leaving = await queue.add("leaving", wait=5)
    await queue.add("next", wait=6)
    with pytest.raises(Throttled):
        await leaving
    await settle()
    assert queue.served == ["next"]
    assert limiter.acquired(KEY) == 1


async def test_who_is_cancelled_while_waiting_leaves_the_queue() -> None:
    limiter = ConnectionLimiter()
    limiter.try_acquire(KEY, 1)
    queue = Queue(limiter, 1)
    leaving = await queue.add("leaving")
    await queue.add("staying")
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert limiter.acquired(KEY) == 1
    limiter.release(KEY, 1)
    await settle()
    assert queue.served == ["staying"]
    limiter.release(KEY, 1)
    assert limiter._shares == {}


async def test_no_one_waits_any_more_when_all_who_waited_are_cancelled() -> None:
    limiter = ConnectionLimiter()
    limiter.try_acquire(KEY, 1)
    task = await Queue(limiter, 1).add("leaving")
    task.cancel()
    await settle()
    assert limiter.try_acquire(KEY, 2)
    limiter.release(KEY, 2)
    assert limiter.acquired(KEY) == 1


async def test_who_is_cancelled_at_the_moment_of_getting_a_connection_hands_it_on() -> None:
    limiter = ConnectionLimiter()
    limiter.try_acquire(KEY, 1)
    queue = Queue(limiter, 1)
    leaving = await queue.add("leaving")
    await queue.add("next")
    limiter.release(KEY, 1)
    leaving.cancel()
    await settle()
    assert queue.served == ["next"]
    assert limiter.acquired(KEY) == 1


async def test_who_is_cancelled_at_the_moment_of_getting_the_last_connection_frees_it() -> None:
    limiter = ConnectionLimiter()
    limiter.try_acquire(KEY, 1)
    leaving = await Queue(limiter, 1).add("leaving")
    limiter.release(KEY, 1)
    leaving.cancel()
    await settle()
    assert limiter._shares == {}


async def test_who_is_cancelled_before_being_woken_is_passed_over() -> None:
    limiter = ConnectionLimiter()
    limiter.try_acquire(KEY, 1)
    queue = Queue(limiter, 1)
    leaving = await queue.add("leaving")
    await queue.add("next")
    leaving.cancel()  # its turn is cancelled, but it has not run yet
    limiter.release(KEY, 1)
    await settle()
    assert queue.served == ["next"]
    assert limiter.acquired(KEY) == 1


async def test_a_limit_that_has_shrunk_is_kept_before_anyone_is_served() -> None:
    limiter = ConnectionLimiter()
    for _ in range(3):
        limiter.try_acquire(KEY, 3)
    queue = Queue(limiter, 3)
    await queue.add("waiting")
    for left in (2, 1):
        limiter.release(KEY, 1)
        await settle()
        assert (limiter.acquired(KEY), queue.served) == (left, [])
    limiter.release(KEY, 1)
    await settle()
    assert (limiter.acquired(KEY), queue.served) == (1, ["waiting"])


async def test_a_limit_that_has_grown_serves_several_at_once() -> None:
    limiter = ConnectionLimiter()
    limiter.try_acquire(KEY, 1)
    queue = Queue(limiter, 1)
    for name in ("first", "second", "third"):
        await queue.add(name)
    limiter.release(KEY, 2)
    await settle()
    assert queue.served == ["first", "second"]
    assert limiter.acquired(KEY) == 2
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


async def test_the_last_to_leave_frees_the_memory_even_while_others_wait_no_more() -> None:
    limiter = ConnectionLimiter()
    limiter.try_acquire(KEY, 1)
    task = await Queue(limiter, 1).add("waiting", wait=5)
    with pytest.raises(Throttled):
        await task
    limiter.release(KEY, 1)
    assert limiter._shares == {}
