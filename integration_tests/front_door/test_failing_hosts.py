"""Hosts that are down, or break: the next one is tried where that does no harm, and they are left out for a while."""

import asyncio

import pytest
from integration_tests.front_door.scripted_cluster import OK, Connection, Host, body_of, door_to, host
from integration_tests.support.conditions import eventually_async

from opensearch_ml_stream.extensions.front_door import cluster_hosts

GET = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
POST = b"POST /_doc HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture(autouse=True)
def long_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that is left out is so until the end of the test, however slow the machine."""
    monkeypatch.setattr(cluster_hosts, "FIRST_PAUSE_SECONDS", 60.0)


async def break_off(connection: Connection) -> None:
    await connection.head()
    connection.reset()


def requests(cluster: Host) -> int:
    return sum(connection.received.count(b"HTTP/1.1") for connection in cluster.connections)


async def test_hosts_are_asked_in_turn() -> None:
    async with host() as one, host() as other, door_to(one.url, other.url) as door:
        for _ in range(6):
            await door.exchange(GET)
    assert (requests(one), requests(other)) == (3, 3)


async def test_a_host_that_is_down_is_left_out() -> None:
    down = Host(break_off)
    await down.start()
    await down.stop()
    async with host() as other, door_to(down.url, other.url) as door:
        for request in (GET, POST) * 3:
            assert body_of(await door.exchange(request)) == b"{}"


async def test_a_host_that_is_back_is_asked_again() -> None:
    async with host() as cluster, door_to(cluster.url) as door:
        assert body_of(await door.exchange(GET)) == b"{}"
        await cluster.stop()
        refused = await door.exchange(GET)
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"did not take the connection" in refused
        await cluster.start()
        assert body_of(await door.exchange(GET)) == b"{}"


async def test_a_safe_request_goes_to_the_next_host_when_the_first_breaks_off() -> None:
    async with host(break_off) as broken, host() as other, door_to(broken.url, other.url) as door:
        for _ in range(2):
            assert body_of(await door.exchange(GET)) == b"{}"
    assert requests(broken) == 1
    assert requests(other) == 2


async def test_a_request_that_may_have_been_done_is_not_sent_again() -> None:
    async with host(break_off) as broken, door_to(broken.url) as door:
        response = await door.exchange(POST)
    assert response.startswith(b"HTTP/1.1 503 ")
    assert b"Whether it has done the request is not known" in response
    assert requests(broken) == 1


async def test_a_body_that_no_host_has_asked_for_goes_to_the_next() -> None:
    async def script(connection: Connection) -> None:
        await connection.head()
        await connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        await connection.body(2_000_000)
        await connection.send(OK)

    large = POST.replace(b"2\r\n\r\n{}", b"2000000\r\n\r\n" + bytes(2_000_000))
    async with host(break_off) as broken, host(script) as other, door_to(other.url, broken.url) as door:
        assert body_of(await door.exchange(large)) == b"{}"
    assert requests(broken) == 1


async def test_an_idle_connection_that_its_host_closed_costs_nothing() -> None:
    async with host() as cluster, door_to(cluster.url) as door:
        await door.exchange(GET)
        cluster.connections[0].reset()
        assert body_of(await door.exchange(GET)) == b"{}"


async def test_a_host_that_breaks_off_in_the_upload_is_a_503() -> None:
    async def script(connection: Connection) -> None:
        await connection.head()
        await connection.body(10_000)
        connection.reset()

    async with host(script) as cluster, door_to(cluster.url) as door:
        client = await door.connect()
        await client.send(b"POST /_bulk HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        await client.send(b"2710\r\n" + bytes(10_000) + b"\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 503 ")


async def test_a_client_that_leaves_during_its_upload_closes_the_hosts_connection() -> None:
    async def script(connection: Connection) -> None:
        await connection.head()
        await connection.body(1000)
        client.reset()
        await connection.closed()
        closed.set()

    closed = asyncio.Event()
    async with host(script) as cluster, door_to(cluster.url) as door:
        client = await door.connect()
        await client.send(b"POST /_bulk HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n" + bytes(1000))
        await asyncio.wait_for(closed.wait(), 20)
        await eventually_async(lambda: not door.state.tasks)
