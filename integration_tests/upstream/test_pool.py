"""Idle connections: kept for a while, never reused once they are closed or have sent bytes."""

import asyncio
from functools import partial

from integration_tests.support.conditions import PATIENCE_SECONDS, eventually_async
from integration_tests.support.fake_provider import Act, FakeProvider, json_response
from integration_tests.upstream.calls import fetch

from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream.addresses import AddressPolicy
from opensearch_ml_stream.plugin.upstream.http1.client import open_upstream
from opensearch_ml_stream.plugin.upstream.http1.connection import Connection, connect, open_tcp
from opensearch_ml_stream.plugin.upstream.http1.pool import ConnectionPool, Route
from opensearch_ml_stream.plugin.upstream.tls_contexts import PLAIN


def route(port: int) -> Route:
    return Route("connector", "http", "127.0.0.1", port, PLAIN, AddressPolicy())


async def connected(provider: FakeProvider) -> Connection:
    return await connect(("127.0.0.1",), "provider", partial(open_tcp, provider.port), 1)


async def test_the_connection_used_last_is_taken_first() -> None:
    pool = ConnectionPool()
    async with FakeProvider(json_response({})) as provider:
        first, last = await connected(provider), await connected(provider)
        pool.put(route(provider.port), first)
        pool.put(route(provider.port), last)
        assert pool.take(route(1)) is None
        assert [pool.take(route(provider.port)) for _ in range(3)] == [last, first, None]
        first.abort()
        last.abort()


async def test_an_idle_connection_is_closed_after_its_time_and_not_before() -> None:
    idle_seconds = 0.2
    pool = ConnectionPool(idle_seconds=idle_seconds)
    async with FakeProvider(json_response({})) as provider:
        connection = await connected(provider)
        idle_since = asyncio.get_running_loop().time()
        pool.put(route(provider.port), connection)
        assert (len(pool), provider.open_connections) == (1, 1)
        await eventually_async(lambda: (len(pool), provider.open_connections) == (0, 0))
        assert asyncio.get_running_loop().time() - idle_since >= idle_seconds


async def test_the_second_address_is_tried_when_the_first_refuses() -> None:
    async with FakeProvider(json_response({})) as provider:
        connection = await connect(("127.0.0.2", "127.0.0.1"), "provider", partial(open_tcp, provider.port), 1)
        assert connection.address == "127.0.0.1"
        connection.abort()


async def test_unrequested_bytes_cost_an_idle_connection() -> None:
    async with (
        FakeProvider([*json_response({}), 0.02, b"HTTP/1.1 408 Request Timeout\r\n\r\n", Act.WAIT]) as provider,
        open_upstream(LiveSettings(Settings(private_ip_enabled=True))) as upstream,
    ):
        await fetch(upstream, provider.url)
        await asyncio.wait_for(provider.disconnected.wait(), PATIENCE_SECONDS)
        assert await fetch(upstream, provider.url) == (200, b"{}")
        assert provider.connections == 2


async def test_closing_the_upstream_closes_its_idle_connections() -> None:
    async with FakeProvider(json_response({})) as provider:
        async with open_upstream(LiveSettings(Settings(private_ip_enabled=True))) as upstream:
            await asyncio.gather(*(fetch(upstream, provider.url) for _ in range(3)))
            assert provider.open_connections > 0
        await eventually_async(lambda: provider.open_connections == 0)
