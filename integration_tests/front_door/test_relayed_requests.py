"""What the cluster gets of a caller's request: all of it, but for headers that are not the caller's to set."""

import asyncio

import pytest
from integration_tests.front_door.scripted_cluster import (
    OK,
    Connection,
    body_of,
    door_to,
    header_lines,
    host,
    respond_ok,
)

from opensearch_ml_stream.extensions.front_door import relay
from opensearch_ml_stream.plugin.server.http1.limits import ConnectionLimits

GET = b"GET %b HTTP/1.1\r\nHost: sidecar\r\nConnection: close\r\n%b\r\n"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts have the time to refuse a body, however slow the machine."""
    monkeypatch.setattr(relay, "CONTINUE_SECONDS", 60.0)


async def test_a_request_comes_as_it_was_sent_but_for_host_and_connection() -> None:
    async with host() as cluster, door_to(cluster.url) as door:
        sent = b"Authorization: Basic eDp5\r\nCookie: a=b\r\nsecuritytenant: t\r\nAccept-Encoding: gzip\r\n"
        response = await door.exchange(GET % (b"/a%20b/_search?q=%7Bx%7D&pretty", sent))
    (connection,) = cluster.connections
    assert body_of(response) == b"{}"
    assert header_lines(bytes(connection.received)) == [
        "GET /a%20b/_search?q=%7Bx%7D&pretty HTTP/1.1", f"host: 127.0.0.1:{cluster.port}",
        "authorization: Basic eDp5", "cookie: a=b", "securitytenant: t", "accept-encoding: gzip",
    ]  # fmt: skip


async def test_headers_of_the_connection_stay_behind() -> None:
    hops = (
        b"Connection: X-Mine, upgrade, content-length\r\nX-Mine: 1\r\nKeep-Alive: 5\r\n"
        b"Proxy-Authorization: x\r\nTE: gzip\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\nProxy-Connection: close\r\n"
    )
    async with host() as cluster, door_to(cluster.url) as door:
        await door.exchange(GET % (b"/", hops))
    lines = header_lines(bytes(cluster.connections[0].received))
    assert lines == ["GET / HTTP/1.1", f"host: 127.0.0.1:{cluster.port}"]


async def test_the_stores_own_login_and_path() -> None:
    """The path is the cluster's, but the login is not the caller's."""
    async with host() as cluster, door_to(f"http://sidecar:secret@127.0.0.1:{cluster.port}/search/") as door:
        await door.exchange(GET % (b"/_cat", b""))
    lines = header_lines(bytes(cluster.connections[0].received))
    assert lines == ["GET /search/_cat HTTP/1.1", f"host: 127.0.0.1:{cluster.port}"]


async def test_a_path_that_leads_out_of_the_stores_goes_nowhere() -> None:
    async with host() as cluster, door_to(f"{cluster.url}/search") as door:
        response = await door.exchange(GET % (b"/%2e%2e/secretapp/x", b""))
    assert response.startswith(b"HTTP/1.1 400 ")
    assert cluster.connections == []


@pytest.mark.parametrize(
    ("trusted", "forwarded"),
    [
        ((), []),
        (("10.0.0.0/8",), []),
        (("127.0.0.0/8",), ["x-user: kim", "x-proxy-roles: admin", "x-forwarded-for: 10.1.1.1, 127.0.0.1"]),
    ],
)
async def test_who_the_user_is_goes_on_from_a_trusted_proxy_only(
    trusted: tuple[str, ...], forwarded: list[str]
) -> None:
    named = b"X-User: kim\r\nX-Proxy-Roles: admin\r\nX-Forwarded-For: 10.1.1.1\r\n"
    async with (
        host() as cluster,
        door_to(cluster.url, proxy_auth_trusted_addresses=trusted, proxy_auth_user_header="x-user") as door,
    ):
        await door.exchange(GET % (b"/", named))
    lines = header_lines(bytes(cluster.connections[0].received))
    assert lines[2:] == forwarded


async def test_a_body_of_chunks_comes_as_chunks_with_its_trailers() -> None:
    async def script(connection: Connection) -> None:
        await connection.head()
        await connection.until(b"\r\n\r\n")
        await connection.send(OK)

    request = (
        b"POST /_bulk HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3;x=y\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Sum: 7\r\nAuthorization: x\r\nX-Proxy-User: admin\r\n"
        b"X-Forwarded-For: 127.0.0.1\r\n\r\n"
    )
    async with host(script) as cluster, door_to(cluster.url) as door:
        assert body_of(await door.exchange(request)) == b"{}"
    received = bytes(cluster.connections[0].received)
    assert b"transfer-encoding: chunked\r\n" in received
    assert body_of(received).endswith(b"0\r\nx-sum: 7\r\n\r\n")
    assert b"".join(body_of(received).split(b"\r\n")[1:-4:2]) == b"abcdefg"


async def test_a_body_that_the_host_refuses_is_not_sent() -> None:
    async def script(connection: Connection) -> None:
        await connection.head()
        await connection.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!")
        await connection.closed()

    async with host(script) as cluster, door_to(cluster.url) as door:
        client = await door.connect()
        head = b"POST /_bulk HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 200000000\r\n\r\n"
        await client.send(head)
        response = await client.until(b"no!")
    assert response.startswith(b"HTTP/1.1 413 ")
    assert bytes(cluster.connections[0].received).endswith(b"\r\n\r\n")


@pytest.mark.parametrize("head", [b"", b"Expect: 100-continue\r\n"], ids=["some of it sent", "none of it sent"])
async def test_a_connection_that_may_wait_for_the_rest_of_a_body_serves_no_other_request(head: bytes) -> None:
    """Its host would take the next request, maybe another caller's, for that rest."""

    async def script(connection: Connection) -> None:
        await connection.head()
        await connection.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!")
        await respond_ok(connection)

    async with host(script) as cluster, door_to(cluster.url) as door:
        client = await door.connect()
        request = b"POST /_bulk HTTP/1.1\r\nHost: a\r\n%bContent-Length: 200\r\n\r\n" % head
        await client.send(request if head else request + b"abc")
        await client.until(b"no!")
        assert (await door.exchange(GET % (b"/", b""))).startswith(b"HTTP/1.1 413 ")
        assert len(cluster.connections) == 2
        assert b"GET" not in cluster.connections[0].received


async def test_a_client_that_waits_for_100_is_told_when_the_host_asks_for_the_body() -> None:
    asked = asyncio.Event()

    async def script(connection: Connection) -> None:
        assert b"Expect: 100-continue" in await connection.head()
        await asked.wait()
        await connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert await connection.body(5) == b"hello"
        await connection.send(OK)

    async with host(script) as cluster, door_to(cluster.url) as door:
        client = await door.connect()
        await client.send(b"PUT /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        asked.set()
        assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(b"hello")
        assert (await client.until(b"{}")).startswith(b"HTTP/1.1 200 ")


async def test_a_large_body_waits_for_the_host_though_its_client_does_not() -> None:
    async def script(connection: Connection) -> None:
        assert b"Expect: 100-continue" in await connection.head()
        await connection.send(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 3\r\n\r\nno!")
        await connection.closed()

    async with host(script) as cluster, door_to(cluster.url) as door:
        client = await door.connect()
        await client.send(b"POST /_bulk HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n" + b"x" * 1000)
        assert (await client.until(b"no!")).startswith(b"HTTP/1.1 401 ")
    assert bytes(cluster.connections[0].received).endswith(b"\r\n\r\n")


async def test_a_disconnect_of_the_client_closes_the_hosts_connection() -> None:
    closed = asyncio.Event()

    async def script(connection: Connection) -> None:
        await connection.head()
        client.reset()
        await connection.closed()
        closed.set()

    async with host(script) as cluster, door_to(cluster.url) as door:
        client = await door.connect()
        await client.send(b"GET /_search HTTP/1.1\r\nHost: a\r\n\r\n")
        await asyncio.wait_for(closed.wait(), 20)


async def test_a_long_upload_that_makes_progress_is_not_cut() -> None:
    parts = 5
    arrived = asyncio.Semaphore(0)

    async def script(connection: Connection) -> None:
        await connection.head()
        for _ in range(parts):
            await connection.body(1000)
            arrived.release()
        await connection.send(OK)

    limits = ConnectionLimits(request_seconds=1)
    async with host(script) as cluster, door_to(cluster.url, limits=limits) as door:
        client = await door.connect()
        await client.send(b"POST /_bulk HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (parts * 1000))
        for number in range(parts):
            await client.send(b"x" * 1000)
            await arrived.acquire()
            if number < parts - 1:
                door.look(29)  # the time of one read is 30 s; that of the whole request has passed
        assert (await client.until(b"{}")).startswith(b"HTTP/1.1 200 ")
