"""Idle connections: kept for a while, never given out when they are no good."""

import asyncio

from integration_tests.support.fake_provider import Act, FakeProvider, json_answer
from integration_tests.upstream.calls import fetch

from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream.addresses import AddressPolicy
from opensearch_ml_stream.plugin.upstream.http1.connection import Connection, connect
from opensearch_ml_stream.plugin.upstream.http1.pool import ConnectionPool, Route
from opensearch_ml_stream.plugin.upstream.open_upstream import open_upstream
from opensearch_ml_stream.plugin.upstream.target import parse_target
from opensearch_ml_stream.plugin.upstream.tls import PLAIN


def route(port: int) -> Route:
    return Route("connector", "http", "127.0.0.1", port, PLAIN, AddressPolicy())


async def connected(provider: FakeProvider) -> Connection:
    return await connect(("127.0.0.1",), parse_target(provider.url), None, 1)


async def test_the_connection_used_last_is_taken_first() -> None:
    pool = ConnectionPool()
    async with FakeProvider(json_answer({})) as provider:
        first, last = await connected(provider), await connected(provider)
        pool.put(route(provider.port), first)
        pool.put(route(provider.port), last)
        assert pool.take(route(1)) is None
        assert [pool.take(route(provider.port)) for _ in range(3)] == [last, first, None]
        first.abort()
        last.abort()


async def test_a_connection_that_nobody_needs_is_closed_after_a_while() -> None:
    pool = ConnectionPool(idle_seconds=0.05)
    async with FakeProvider(json_answer({})) as provider:
        pool.put(route(provider.port), await connected(provider))
        await asyncio.sleep(0.02)
        assert len(pool) == 1
        await asyncio.sleep(0.15)
        assert (len(pool), provider.open_connections) == (0, 0)


async def test_the_second_address_is_tried_when_the_first_refuses() -> None:
    async with FakeProvider(json_answer({})) as provider:
        connection = await connect(("127.0.0.2", "127.0.0.1"), parse_target(provider.url), None, 1)
        assert connection.address == "127.0.0.1"
        connection.abort()


async def test_bytes_that_nobody_asked_for_cost_an_idle_connection() -> None:
    async with (
        FakeProvider([*json_answer({}), 0.02, b"HTTP/1.1 408 Request Timeout\r\n\r\n", Act.WAIT]) as provider,
        open_upstream(LiveSettings(Settings(private_ip_enabled=True))) as upstream,
    ):
        await fetch(upstream, provider.url)
        await asyncio.wait_for(provider.left.wait(), 1)
        assert await fetch(upstream, provider.url) == (200, b"{}")
        assert provider.connections == 2


async def test_closing_the_upstream_closes_its_idle_connections() -> None:
    async with FakeProvider(json_answer({})) as provider:
        async with open_upstream(LiveSettings(Settings(private_ip_enabled=True))) as upstream:
            await asyncio.gather(*(fetch(upstream, provider.url) for _ in range(3)))
            assert provider.open_connections > 0
        await asyncio.sleep(0.02)
        assert provider.open_connections == 0
