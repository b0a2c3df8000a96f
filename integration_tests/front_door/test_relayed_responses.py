"""What the caller gets of the cluster's response: all of it, and never a whole response for half of one."""

import asyncio

import pytest
from integration_tests.front_door.scripted_cluster import Connection, Door, Host, body_of, door_to, header_lines, host

REQUEST = b"%b /_search HTTP/1.1\r\nHost: sidecar\r\nConnection: close\r\n\r\n"


def responding(*parts: bytes, end: str = "") -> Host:
    """A host that sends these parts, and then may close or reset the connection."""

    async def script(connection: Connection) -> None:
        await connection.head()
        for part in parts:
            await connection.send(part)
        if end == "close":
            connection.writer.close()
        elif end == "reset":
            connection.reset()
        await connection.closed()

    return Host(script)


async def exchange(cluster: Host, method: bytes = b"GET", version: bytes = b"1.1") -> bytes:
    await cluster.start()
    try:
        async with door_to(cluster.url) as door:
            return await door.exchange((REQUEST % method).replace(b"1.1", version))
    finally:
        await cluster.stop()


async def test_status_headers_and_body_come_as_they_are() -> None:
    head = b"HTTP/1.1 207 Multi\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Encoding: gzip\r\nDate: yesterday\r\n"
    received = await exchange(
        responding(head + b"Content-Length: 4\r\nWarning: 299 x\r\n\r\n", b"\x1f\x8b", b"\x00\xff")
    )
    first, *lines = header_lines(received.partition(b"\r\n\r\n")[0])
    assert first.startswith("HTTP/1.1 207")
    assert lines == [
        "set-cookie: a=1", "set-cookie: b=2", "content-encoding: gzip", "date: yesterday", "warning: 299 x",
        "content-length: 4", "connection: close",
    ]  # fmt: skip
    assert body_of(received) == b"\x1f\x8b\x00\xff"


async def test_headers_of_the_connection_stay_behind() -> None:
    head = (
        b"HTTP/1.1 200 OK\r\nConnection: x-mine\r\nX-Mine: 1\r\nKeep-Alive: 5\r\nContent-Length: 0\r\nDate: d\r\n\r\n"
    )
    received = await exchange(responding(head))
    assert header_lines(received)[1:] == ["date: d", "content-length: 0", "connection: close"]


@pytest.mark.parametrize(
    ("method", "status"), [(b"HEAD", b"200"), (b"GET", b"304"), (b"GET", b"204")], ids=["HEAD", "304", "204"]
)
async def test_a_response_without_a_body_ends_with_its_head(method: bytes, status: bytes) -> None:
    """With the length that a body would have, but for a 204, which never has one."""
    received = await exchange(responding(b"HTTP/1.1 %b X\r\nContent-Length: 500\r\nETag: e\r\n\r\n" % status), method)
    assert body_of(received) == b""
    assert ("content-length: 500" in header_lines(received)) == (status != b"204")


async def test_chunks_and_trailers_come_through() -> None:
    chunks = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"2\r\nde\r\n",
        b"0\r\nX-Sum: 5\r\n\r\n",
    )
    received = await exchange(responding(*chunks))
    assert body_of(received).endswith(b"0\r\nx-sum: 5\r\n\r\n")
    assert b"abc" in received
    assert b"de" in received


async def test_informational_responses_come_before_the_final_one() -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 3\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
    received = await exchange(responding(hints, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"))
    assert received.startswith(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n")


async def test_a_client_of_http_1_0_gets_no_informational_response_and_no_chunks() -> None:
    heads = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    received = await exchange(responding(heads, b"2\r\n{}\r\n0\r\nA: b\r\n\r\n"), version=b"1.0")
    assert received.startswith(b"HTTP/1.1 200 OK\r\n")
    assert body_of(received) == b"{}"


async def test_a_response_that_ends_with_its_connection_is_whole() -> None:
    received = await exchange(responding(b"HTTP/1.1 200 OK\r\n\r\nabc", b"def", end="close"))
    assert b"".join(body_of(received).split(b"\r\n")[1::2]) == b"abcdef"
    assert received.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("framing", [b"Content-Length: 100", b"Transfer-Encoding: chunked"])
async def test_half_a_response_is_seen_to_be_half(framing: bytes, end: str) -> None:
    received = await exchange(responding(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n3\r\nabc\r\n" % framing, end=end))
    assert b"abc" in received
    assert not received.endswith(b"0\r\n\r\n")
    assert len(body_of(received)) < 100


async def test_half_a_response_to_a_client_of_http_1_0_is_a_reset() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
    cluster = responding(head, end="close")
    await cluster.start()
    try:
        async with door_to(cluster.url) as door:
            client = await door.connect()
            await client.send((REQUEST % b"GET").replace(b"1.1", b"1.0"))
            with pytest.raises(ConnectionResetError):
                while await client.reader.read(1000):
                    pass
    finally:
        await cluster.stop()


@pytest.mark.parametrize(
    "response", [b"\x15\x03\x03\x00\x02\x02\x50", b"HTTP/1.1 600 Odd\r\nContent-Length: 0\r\n\r\n"]
)
async def test_what_is_no_http_is_a_503(response: bytes) -> None:
    received = await exchange(responding(response))
    assert received.startswith(b"HTTP/1.1 503 ")
    assert b"does not speak HTTP/1.1" in received


async def test_connections_serve_one_request_after_another() -> None:
    async with host() as cluster, door_to(cluster.url) as door:
        for _ in range(3):
            await door.exchange(REQUEST % b"GET")
    assert len(cluster.connections) == 1


async def test_a_slow_client_slows_the_cluster_down() -> None:
    sent = 0

    async def script(connection: Connection) -> None:
        nonlocal sent
        await connection.head()
        await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while True:
            await connection.send(bytes(65536))
            sent += 65536

    async with host(script) as cluster, door_to(cluster.url) as door:
        client = await door.connect()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await client.send(REQUEST % b"GET")
        before = -1
        while before != sent or not sent:  # until nothing moves any more
            before = sent
            await asyncio.sleep(0.3)
        assert sent < 64_000_000  # what the sockets between them hold


async def test_fetch_returns_status_and_body() -> None:
    async def script(connection: Connection) -> None:
        await connection.head()
        await connection.body(2)
        await connection.send(b"HTTP/1.1 404 Not\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")

    async with host(script) as cluster, door_to(cluster.url) as door:
        assert await fetched(door) == (404, b"{}")
    lines = header_lines(bytes(cluster.connections[0].received).partition(b"\r\n\r\n")[0])
    assert lines == [
        "GET /_plugins/_ml/stats?pretty HTTP/1.1", f"host: 127.0.0.1:{cluster.port}", "authorization: x",
        "accept: application/json", "content-type: application/json", "content-length: 2",
    ]  # fmt: skip


async def fetched(door: Door) -> tuple[int, bytes]:
    headers = [(b"host", b"a"), (b"authorization", b"x"), (b"range", b"bytes=0-1"), (b"x-proxy-user", b"admin")]
    return await door.app.fetch({"type": "http", "headers": headers}, "/_plugins/_ml/stats?pretty", b"{}")
