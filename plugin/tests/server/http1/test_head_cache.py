"""Heads that are known are not parsed again; what the application sees of a request is the same."""

import asyncio
import gc

import httptools
import pytest
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.plugin.server.http1.head_cache import (
    MAX_HEAD_SIZE,
    MAX_HEADS,
    HeadCache,
    RequestHead,
    parts_of_whole_request,
)
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import DIRECT_EXCHANGE, HEAD_MEMO
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory, BodyReservation
from tests.server.client_connection import Bodies, Connection, settle

HEAD = b"POST /a%%20b?c=d HTTP/1.1\r\nHost: h\r\n%b: %d\r\nX-Request-Id: me\r\n\r\n"


def request(body: bytes, name: bytes = b"Content-Length") -> bytes:
    return HEAD % (name, len(body)) + body


class Scopes:
    """An ASGI application that keeps what it is called with, and responds."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.bodies: list[bytes | None] = []
        self.reserved: list[int] = []
        self.budget = BodyMemory(10_000, 10_000)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reservation = BodyReservation(self.budget)
        self.bodies.append(scope["extensions"][DIRECT_EXCHANGE].take_body(reservation))
        self.reserved.append(reservation.size)
        self.scopes.append({name: value for name, value in scope.items() if name != "extensions"})
        await scope["extensions"][DIRECT_EXCHANGE].respond(b"content-length: 2\r\n", b"ok")


async def test_a_known_request_is_told_as_a_parsed_one_but_for_its_length() -> None:
    app = Scopes()
    connection = Connection(app)
    for body in (b"first", b"first", b"the second", b""):
        await connection.receive(request(body))
    assert app.bodies == [b"first", b"first", b"the second", b""]
    assert app.reserved == [5, 5, 10, 0], "what is reserved for a body goes on with it"
    parsed, again, longer, empty = app.scopes
    for other, length in ((again, b"5"), (longer, b"10"), (empty, b"0")):
        headers = [(b"host", b"h"), (b"content-length", length), (b"x-request-id", b"me")]
        assert other["headers"] == headers
        assert other[HEAD_MEMO] is parsed[HEAD_MEMO]
        for name in parsed.keys() - {"headers", "opensearch_ml_stream.request_notes"}:
            assert other[name] == parsed[name]
        assert other["opensearch_ml_stream.request_notes"].id == "me"
    assert parsed["headers"] is not again["headers"]
    assert connection.sent() == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok" * 4
    await connection.end()


async def test_heads_are_known_to_all_connections_of_a_worker_and_spelled_either_way() -> None:
    app = Scopes()
    first = Connection(app)
    await first.receive(request(b"a") + request(b"b"))  # two at once are parsed
    await first.receive(request(b"c", b"content-length"))
    await first.receive(request(b"d", b"CONTENT-LENGTH"))
    await first.receive(request(b"e", b"content-length"))
    memos = [scope[HEAD_MEMO] for scope in app.scopes]
    assert app.bodies == [b"a", b"b", b"c", b"d", b"e"]
    assert memos[2] is memos[4]
    assert len({id(memo) for memo in memos}) == 4
    await first.end()


async def test_a_connection_has_no_parser_while_its_heads_are_known() -> None:
    connection = Connection(Scopes())
    for data, is_parsed in (
        (request(b"a"), False),  # once it is known
        (request(b"b"), False),
        (request(b"c") + request(b"d"), True),
        (request(b"e", b"content-length"), False),
    ):
        await connection.receive(data)
        held = gc.get_referents(connection.protocol._parser)
        assert any(isinstance(one, httptools.HttpRequestParser) for one in held) is is_parsed
    assert connection.sent().count(b"HTTP/1.1 200 OK") == 5
    await connection.end()


@pytest.mark.parametrize(
    "line",
    [b"Connection: close\r\n", b"Expect: 100-continue\r\n", b"Connection: upgrade\r\nUpgrade: h2c\r\n"],
    ids=["close", "expect", "upgrade"],
)
async def test_requests_that_change_the_connection_are_parsed_each_time(line: bytes) -> None:
    app = Scopes()
    connection = Connection(app)
    await connection.receive(b"POST / HTTP/1.1\r\nHost: h\r\n%bContent-Length: 1\r\n\r\nx" % line)
    assert connection.protocol._shared.heads._young == {}
    await connection.end()


async def test_a_request_behind_half_a_request_is_no_known_head() -> None:
    app = Bodies()
    connection = Connection(app)
    whole = request(b"x")
    await connection.receive(whole)
    await connection.receive(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(whole))
    await connection.receive(whole)  # it is the body
    assert app.bodies == [b"x", whole]
    await connection.receive(b"POST / HTTP/1.1\r\nHost: h\r\nX: ")
    await connection.receive(whole)
    assert connection.sent().count(b"HTTP/1.1 200 OK") == 2  # a header of that line, and a body that is not whole
    await connection.end()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\na",
        b"POST / HTTP/1.1\r\nContent-Length: 02\r\n\r\nab",
        b"POST / HTTP/1.1\r\nContent-Length: +2\r\n\r\nab",
        b"POST / HTTP/1.1\r\nContent-Length: 2 \r\n\r\nab",
        b"POST / HTTP/1.1\r\nContent-Length:  2\r\n\r\nab",
        b"POST / HTTP/1.1\r\nContent-Length: \r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: \xb2\r\n\r\nab",
        b"POST / HTTP/1.1\r\nX: " + b"x" * MAX_HEAD_SIZE + b"\r\nContent-Length: 2\r\n\r\nab",
    ],
)
def test_what_is_not_one_whole_plain_request_has_no_parts(data: bytes) -> None:
    assert parts_of_whole_request(data) is None


def test_the_parts_of_a_whole_request_are_all_but_its_digits() -> None:
    assert parts_of_whole_request(b"POST / HTTP/1.1\r\ncontent-length: 2\r\nA: b\r\n\r\n\r\n") == (
        b"POST / HTTP/1.1\r\ncontent-length: \r\nA: b",
        b"2",
        len(b"POST / HTTP/1.1\r\ncontent-length: 2\r\nA: b\r\n\r\n"),
    )


def head() -> RequestHead:
    return RequestHead({"headers": []}, True, False, "")


def test_heads_that_nobody_sends_are_forgotten_and_their_number_is_bounded() -> None:
    heads, often = HeadCache(), head()
    heads.remember(b"often", often)
    heads.remember(b"once", head())
    for second in range(0, 40):
        heads.expire(1000.0 + second)
        assert heads.find(b"often") is often
    assert heads.find(b"once") is None
    for number in range(10 * MAX_HEADS):
        heads.remember(b"%d" % number, head())
    assert heads.find(b"often") is None
    assert len(heads._young) + len(heads._old) <= 2 * MAX_HEADS


async def test_a_request_that_has_ended_leaves_no_cycle_of_references() -> None:
    app = Bodies()
    connection = Connection(app)
    await connection.receive(request(b"x"))
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(100):
            await connection.receive(request(b"x"))
            connection.sent()
            connection.transport.calls.clear()
        app.bodies.clear()
        assert len(gc.get_objects()) - before < 100
    finally:
        gc.enable()
    await connection.end()
    await asyncio.sleep(0)
    await settle()
