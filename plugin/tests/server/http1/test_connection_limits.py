"""What a client may take of a connection: bytes of heads and bodies, time, requests in a row."""

import gzip
import json

import pytest
from uvicorn.server import ServerState

from opensearch_ml_stream.plugin.server.http1.limits import MAX_HEAD_BYTES, MAX_PIPELINED, ConnectionLimits
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory
from tests.server.client_connection import Bodies, Connection, Requests, settle

GET = b"GET /%b HTTP/1.1\r\nHost: h\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"


def refused(connection: Connection, status: int) -> str:
    """The reason, of a response after which the client may read on while the server sends no more."""
    head, _, body = connection.sent().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), head
    assert b"\r\nconnection: close" in head.lower()
    assert connection.transport.calls[-1] == "write_eof"
    error = json.loads(body)
    assert error["status"] == status
    return str(error["error"]["reason"])


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"x" * MAX_HEAD_BYTES,
        b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n",
        b"GET /" + b"x" * MAX_HEAD_BYTES,
        b"GET / HTTP/1.1\r\nHost: h\r\n" + b"X: 1\r\n" * 258,
        b"GET / HTTP/1.1\r\nHost: h\r\n" + (b"X: " + b"1" * 1000 + b"\r\n") * 70,
        b"\r\n" * MAX_HEAD_BYTES,
    ],
    ids=["value", "whole", "url", "number", "lines", "nothing"],
)
@pytest.mark.parametrize("step", [1 << 20, 1000])
async def test_a_head_beyond_its_limits_is_refused_while_it_arrives(
    connection: Connection, head: bytes, step: int
) -> None:
    for start in range(0, len(head), step):
        await connection.receive(head[start : start + step])
    assert "65536 bytes" in refused(connection, 431)


async def test_a_head_at_its_limits_is_served(connection: Connection) -> None:
    await connection.receive(b"GET / HTTP/1.1\r\nHost: h\r\n" + b"X: 1\r\n" * 255 + b"\r\n")
    assert connection.sent().startswith(b"HTTP/1.1 200 ")
    head = b"GET / HTTP/1.1\r\nHost: h\r\nX: "
    await connection.receive(head + b"x" * (MAX_HEAD_BYTES - len(head) - 4) + b"\r\n\r\n")
    assert connection.sent().startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "rest", [b"1;" + b"x" * 1000, b"0\r\n" + b"X: " + b"x" * 1000], ids=["chunk extension", "trailer"]
)
async def test_what_is_neither_head_nor_body_has_a_limit(connection: Connection, app: Bodies, rest: bytes) -> None:
    await connection.receive(CHUNKED + rest)
    for _ in range(MAX_HEAD_BYTES // 1000 + 1):
        await connection.receive(b"x" * 1000)
    assert "65536 bytes" in refused(connection, 431)
    assert app.disconnects == 1


async def test_trailers_do_not_become_headers(connection: Connection, app: Bodies) -> None:
    await connection.receive(CHUNKED + b"2\r\nab\r\n0\r\nHost: other\r\nX: 1\r\n\r\n" + GET % b"")
    assert app.bodies == [b"ab", b""]
    assert connection.sent().count(b"HTTP/1.1 200 OK") == 2


async def test_a_client_that_sends_nothing_is_closed_after_10_seconds(connection: Connection) -> None:
    await connection.passes(9)
    assert not connection.transport.is_closing()
    await connection.passes(1)
    assert connection.transport.is_closing() and connection.sent() == b""


async def test_an_idle_connection_is_closed_after_75_seconds(connection: Connection) -> None:
    await connection.receive(GET % b"")
    connection.sent()
    await connection.passes(74)
    assert not connection.transport.is_closing()
    await connection.passes(1)
    assert connection.transport.is_closing() and connection.sent() == b""


@pytest.mark.parametrize("before", [b"", GET % b""], ids=["first", "second"])
async def test_a_head_is_whole_10_seconds_after_its_first_byte(connection: Connection, before: bytes) -> None:
    await connection.receive(before)
    connection.sent()
    for byte in b"GET / HTTP":
        assert connection.sent() == b""
        await connection.receive(bytes([byte]))
        await connection.passes(1)
    assert "10 seconds" in refused(connection, 408)


async def test_a_body_may_pause_for_less_than_30_seconds(connection: Connection, app: Bodies) -> None:
    await connection.receive(POST % 5)
    for _ in range(4):
        await connection.receive(b"x")
        await connection.passes(29)
    await connection.passes(1)
    assert "30 seconds" in refused(connection, 408)
    assert app.disconnects == 1
    assert connection.bodies.reserved == 0


async def test_a_request_is_whole_within_its_time_however_steadily_it_comes(app: Bodies) -> None:
    connection = Connection(app, ConnectionLimits(request_seconds=60))
    await connection.receive(POST % 1000)
    for _ in range(59):
        await connection.receive(b"x")
        await connection.passes(1)
    assert connection.sent() == b""
    await connection.passes(1)
    assert "60 seconds (setting opensearch_ml_stream.request_timeout_seconds)" in refused(connection, 408)


async def test_a_response_takes_as_long_as_it_likes() -> None:
    app = Requests()
    connection = Connection(app)
    await connection.receive(GET % b"a" + b"GET /half")
    await connection.passes(10_000)
    assert not connection.transport.is_closing()
    await app.end("/a")
    connection.sent()
    await connection.passes(10)
    assert "10 seconds" in refused(connection, 408)
    await connection.end()


async def test_a_client_that_goes_on_sending_after_a_refusal_may_read_it_for_2_seconds(connection: Connection) -> None:
    await connection.receive(b"GET /" + b"x" * MAX_HEAD_BYTES)
    await connection.receive(b"x" * 1_000_000)
    await connection.passes(1)
    assert not connection.transport.is_closing()
    await connection.passes(1)
    assert connection.transport.is_closing()


async def test_the_client_ends_a_refused_connection_by_closing_it(connection: Connection) -> None:
    await connection.receive(b"\0")
    connection.transport.receive_eof()
    assert connection.transport.is_closing()


async def test_a_client_that_takes_nothing_for_5_minutes_is_given_up() -> None:
    app = Requests()
    connection = Connection(app)
    await connection.receive(GET % b"a")
    connection.protocol.pause_writing()
    connection.transport.write_buffer_size = 100_000
    await connection.passes(299)
    connection.transport.write_buffer_size = 99_999  # it took a byte
    await connection.passes(300)
    assert "abort" not in connection.transport.calls
    await connection.passes(1)
    assert "abort" in connection.transport.calls
    await connection.end()


async def test_more_connections_than_the_limit_are_closed_at_once(app: Bodies) -> None:
    state, limits = ServerState(), ConnectionLimits(max_connections=2)
    connections = [Connection(app, limits, state=state) for _ in range(3)]
    assert [one.transport.is_closing() for one in connections] == [False, False, True]
    assert connections[2].warnings == ["2 clients are connected, which is the limit; new connections are closed"]
    await settle()
    assert len(state.connections) == 2
    connections[0].transport.close()
    await settle()
    assert not Connection(app, limits, state=state).transport.is_closing()


async def test_bodies_are_counted_while_they_wait_behind_another_response() -> None:
    app = Requests()
    connection = Connection(app, bodies=BodyMemory(1000, 1000))
    await connection.receive(GET % b"a" + POST % 2000 + b"x" * 600)
    assert connection.bodies.reserved == 600
    await connection.receive(b"x" * 600)
    assert connection.bodies.reserved == 0
    await app.end("/a")
    assert b"max_total_body_size" in connection.sent()
    assert app.paths == ["/a"]
    await connection.end()


async def test_a_body_that_does_not_fit_beside_the_others_is_refused(app: Bodies) -> None:
    connection = Connection(app, bodies=BodyMemory(1000, 1000))
    connection.bodies.reserved = 900
    connection.transport.receive(POST % 200 + b"x" * 200)
    head = connection.transport.written[0]
    assert head.startswith(b"HTTP/1.1 429 ") and b"\r\nretry-after: 1\r\n" in head
    await settle()
    assert connection.bodies.reserved == 900


async def test_requests_beyond_the_pipeline_get_no_response_and_a_closed_connection(app: Bodies) -> None:
    connection = Connection(app)
    await connection.receive((GET % b"") * 100)
    while not connection.transport.is_closing():
        await settle()
    sent = connection.sent()
    assert sent.count(b"HTTP/1.1 200 OK") == MAX_PIPELINED + 1
    assert sent.count(b"connection: close") == 1
    assert connection.transport.is_closing()


async def test_a_compressed_body_counts_as_it_arrives(connection: Connection, app: Bodies) -> None:
    body = gzip.compress(b"x" * 1000)
    await connection.receive(POST % len(body) + body)
    assert app.bodies == [body]  # decompressed by who reads it
    assert connection.bodies.reserved == 0
