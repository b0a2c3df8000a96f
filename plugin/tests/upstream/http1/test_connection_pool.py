"""Idle connections are kept for a while, and none is given out that is of no use."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from opensearch_ml_stream.plugin.upstream.addresses import AddressPolicy
from opensearch_ml_stream.plugin.upstream.http1.connection import Connection
from opensearch_ml_stream.plugin.upstream.http1.pool import ConnectionPool, Route
from opensearch_ml_stream.plugin.upstream.tls_contexts import PLAIN, UNVERIFIED
from tests.upstream.fake_transport import FakeTransport
from tests.upstream.virtual_time_loop import now, pending_timers

ROUTE = Route("connector", "https", "provider.example", 443, PLAIN, AddressPolicy())


def connected() -> tuple[Connection, FakeTransport]:
    connection = Connection("192.0.2.1")
    transport = FakeTransport(connection)
    connection.connection_made(transport)
    return connection, transport


def put(pool: ConnectionPool, route: Route = ROUTE) -> tuple[Connection, FakeTransport]:
    connection, transport = connected()
    pool.put(route, connection)
    return connection, transport


async def test_the_connection_used_last_is_taken_first_and_only_once() -> None:
    pool = ConnectionPool()
    assert pool.take(ROUTE) is None
    first, second, third = (put(pool)[0] for _ in range(3))
    assert len(pool) == 3
    assert [pool.take(ROUTE), pool.take(ROUTE)] == [third, second]
    assert len(pool) == 1
    assert [pool.take(ROUTE), pool.take(ROUTE)] == [first, None]
    assert len(pool) == 0


@pytest.mark.parametrize(
    "other",
    [
        replace(ROUTE, pool_key="another"),
        replace(ROUTE, scheme="http"),
        replace(ROUTE, host="other.example"),
        replace(ROUTE, port=8443),
        replace(ROUTE, tls=UNVERIFIED),
        replace(ROUTE, policy=AddressPolicy(private_allowed=True)),
    ],
)
async def test_a_connection_serves_only_the_route_it_was_made_for(other: Route) -> None:
    pool = ConnectionPool()
    connection, _ = put(pool)
    put(pool, other)
    assert pool.take(other) is not connection
    assert pool.take(other) is None
    assert pool.take(ROUTE) is connection


def test_routes_that_differ_in_their_policy_only_differ_but_have_one_hash() -> None:
    other = replace(ROUTE, policy=AddressPolicy(private_allowed=True))
    assert other != ROUTE and hash(other) == hash(ROUTE)
    assert hash(replace(ROUTE, host="other.example")) != hash(ROUTE)


async def test_an_idle_connection_is_the_protocol_of_its_transport() -> None:
    pool = ConnectionPool()
    connection, transport = connected()
    transport.protocol = asyncio.Protocol()
    await asyncio.sleep(7)
    pool.put(ROUTE, connection)
    assert transport.protocol is connection
    assert connection.idle_since == 7


@pytest.mark.parametrize(
    ("event", "last_call"),
    [
        (lambda transport: transport.receive(b"HTTP/1.1 408 Request Timeout\r\n\r\n"), "abort"),
        (FakeTransport.receive_eof, "close"),
        (FakeTransport.reset, "reset"),
    ],
    ids=["bytes", "closed by the provider", "broken"],
)
async def test_whatever_happens_to_an_idle_connection_removes_it(
    event: Callable[[FakeTransport], None], last_call: str
) -> None:
    pool = ConnectionPool()
    before, _ = put(pool)
    connection, transport = put(pool)
    after, _ = put(pool)
    event(transport)
    await asyncio.sleep(0)
    assert transport.is_closing() and transport.calls[-1] == last_call
    assert connection.on_unusable is None
    assert len(pool) == 2
    assert [pool.take(ROUTE), pool.take(ROUTE), pool.take(ROUTE)] == [after, before, None]


async def test_what_happens_to_a_connection_in_use_is_none_of_the_pools_business() -> None:
    pool = ConnectionPool()
    put(pool)
    connection, transport = put(pool)
    assert pool.take(ROUTE) is connection
    assert connection.on_unusable is None
    transport.reset()
    await asyncio.sleep(0)
    assert len(pool) == 1


async def test_a_connection_that_is_closing_is_never_given_out() -> None:
    pool = ConnectionPool()
    good, _ = put(pool)
    for _ in range(2):
        _, transport = put(pool)
        transport.close()
    assert [pool.take(ROUTE), pool.take(ROUTE)] == [good, None]
    assert len(pool) == 0
    _, transport = put(pool)
    transport.close()
    assert pool.take(ROUTE) is None


async def test_a_connection_is_closed_when_it_was_idle_for_its_time() -> None:
    pool = ConnectionPool()
    _, transport = put(pool)
    await asyncio.sleep(29.999)
    assert (len(pool), transport.is_closing()) == (1, False)
    await asyncio.sleep(0.002)
    assert (len(pool), transport.calls[-1]) == (0, "abort")


async def test_the_pool_looks_again_every_half_of_the_idle_time_while_it_holds_connections() -> None:
    pool = ConnectionPool(idle_seconds=30)
    closed_at: list[float] = []
    for wait in (0, 14, 2, 20):  # idle since 0, 14, 16 and 36; looked at 30, 45, 60 and 75
        await asyncio.sleep(wait)
        _, transport = put(pool)
        transport.abort = lambda: closed_at.append(now())  # type: ignore[method-assign]
    await asyncio.sleep(100)
    assert closed_at == [30, 45, 60, 75]
    assert len(pool) == 0
    put(pool)
    await asyncio.sleep(29)
    assert len(pool) == 1
    await asyncio.sleep(1)
    assert len(pool) == 0


async def test_a_pool_without_connections_does_not_look_for_them() -> None:
    pool = ConnectionPool(idle_seconds=30)
    assert pending_timers() == 0
    taken, (_, unusable) = put(pool)[0], put(pool, replace(ROUTE, port=1))
    assert pool.take(ROUTE) is taken
    unusable.receive_eof()
    await asyncio.sleep(31)
    assert pending_timers() == 0


async def test_connections_of_every_route_are_closed_when_their_time_is_over() -> None:
    pool = ConnectionPool(idle_seconds=30)
    for route in (ROUTE, ROUTE, replace(ROUTE, port=1), replace(ROUTE, port=2)):
        put(pool, route)
    await asyncio.sleep(31)
    assert len(pool) == 0


async def test_a_closed_pool_aborts_what_it_holds_and_what_comes_later() -> None:
    pool = ConnectionPool()
    held = [put(pool, route)[1] for route in (ROUTE, ROUTE, replace(ROUTE, port=1))]
    pool.close()
    assert [transport.calls[-1] for transport in held] == ["abort"] * 3
    assert len(pool) == 0
    _, late = put(pool)
    assert late.calls == ["abort"]
    assert len(pool) == 0
    pool.close()


async def test_of_one_route_no_more_are_kept_than_may_be() -> None:
    pool = ConnectionPool(most=2)
    kept = [put(pool)[1] for _ in range(3)]
    put(pool, replace(ROUTE, port=1))
    assert [transport.calls[-1] for transport in kept] == ["set_protocol", "set_protocol", "abort"]
    assert len(pool) == 3
    pool.close()


async def test_the_idle_connections_of_one_route_can_be_closed() -> None:
    pool = ConnectionPool()
    closed = [put(pool)[1] for _ in range(2)]
    other, _ = put(pool, replace(ROUTE, port=1))
    pool.close_idle(ROUTE)
    assert [transport.calls[-1] for transport in closed] == ["abort"] * 2
    assert pool.take(ROUTE) is None
    assert pool.take(replace(ROUTE, port=1)) is other
    pool.close_idle(ROUTE)


async def test_a_closed_pool_has_no_timer() -> None:
    pool = ConnectionPool()
    put(pool)
    pool.close()
    assert pending_timers() == 0


def test_a_connection_without_a_transport_can_be_aborted() -> None:
    unusable: list[Connection] = []
    connection = Connection("192.0.2.1")
    connection.abort()
    connection.on_unusable = unusable.append
    connection.abort()
    assert unusable == [connection]
