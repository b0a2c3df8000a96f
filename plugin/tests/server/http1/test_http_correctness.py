"""Requests that servers read in different ways are refused; all others get their response, whoever sends them."""

import asyncio
import json
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.rest_handlers.http.asgi_extensions import CHUNK_WRITER, HALF_CLOSED
from tests.server.client_connection import Bodies, Connection, Requests, settle

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n"
WHOLE_POST = POST + b"\r\nabcd"


@pytest.mark.parametrize(
    ("request_bytes", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "no header Host"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "no header Host, or several"),
        (b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", "no header Host, or several"),
        (b"GET /\r\n\r\n", "HTTP/0.9"),
        (b"GET / HTTP/2.0\r\nHost: h\r\n\r\n", "HTTP/2.0"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding"),
        (b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", "Length"),
        (POST + b"Content-Length: 4\r\n\r\nabcd", "Content-Length"),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \xb2\r\n\r\n", "Content-Length"),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", "Content-Length"),
        (b"GET / HTTP/1.1\nHost: h\n\n\x00", "cannot be read"),
        (b"GET /\xff HTTP/1.1\r\nHost: h\r\n\r\n", "cannot be read"),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: h\r\n\r\n", "URL"),
        (b"\x16\x03\x01\x02\x00\x01\x00", "cannot be read"),
    ],
)
async def test_a_request_that_is_ambiguous_or_not_http_is_400(
    connection: Connection, app: Bodies, request_bytes: bytes, reason: str
) -> None:
    await connection.receive(request_bytes)
    head, _, body = connection.sent().rpartition(b"\r\n\r\n")
    assert b"HTTP/1.1 400 Bad Request\r\n" in head
    assert b"connection: close" in head
    assert reason in json.loads(body)["error"]["reason"]
    assert app.bodies in ([], [b""])  # the lenient request before a bare NUL


async def test_garbage_behind_a_good_request_is_refused_after_its_response() -> None:
    app = Requests()
    connection = Connection(app)
    await connection.receive(GET + b"\0\0\0")
    await app.end("/")
    good, _, bad = connection.sent().partition(b"0\r\n\r\n")
    assert good.startswith(b"HTTP/1.1 200 OK")
    assert bad.startswith(b"HTTP/1.1 400 Bad Request")
    await connection.end()


async def test_a_body_that_becomes_malformed_is_refused(connection: Connection, app: Bodies) -> None:
    await connection.receive(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nxx")
    assert connection.sent().startswith(b"HTTP/1.1 400 ")
    assert app.disconnects == 1


async def test_an_http_1_0_client_gets_the_bare_body_and_the_end_of_the_connection() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert CHUNK_WRITER not in scope.get("extensions", {})
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"y")]})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        await send({"type": "http.response.body", "body": b"two"})

    connection = Connection(app)
    await connection.receive(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    assert connection.sent() == b"HTTP/1.1 200 OK\r\nx: y\r\nconnection: close\r\n\r\nonetwo"
    assert connection.transport.is_closing()


@pytest.mark.parametrize("method", [b"HEAD", b"GET"])
async def test_a_head_request_gets_the_head_alone(method: bytes) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]})
        await send({"type": "http.response.body", "body": b"one"})

    connection = Connection(app)
    await connection.receive(method + GET[3:] + GET)
    body = b"" if method == b"HEAD" else b"one"
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n"
    assert connection.sent() == head + body + head + b"one"
    await connection.end()


async def test_a_client_that_expects_100_gets_it_when_the_body_is_wanted(connection: Connection, app: Bodies) -> None:
    await connection.receive(POST + b"Expect: 100-continue\r\n\r\n")
    assert connection.sent() == b"HTTP/1.1 100 Continue\r\n\r\n"
    await connection.receive(b"abcd")
    assert app.bodies == [b"abcd"]
    assert connection.sent().startswith(b"HTTP/1.1 200 OK")
    assert not connection.transport.is_closing()


async def test_a_response_before_the_end_of_its_request_closes_the_connection() -> None:
    app = Requests()
    connection = Connection(app)
    await connection.receive(POST + b"Expect: 100-continue\r\n\r\n")
    await app.end("/")
    sent = connection.sent()
    assert sent.startswith(b"HTTP/1.1 200 OK") and b"connection: close" in sent
    await connection.receive(GET)  # perhaps the body, perhaps a request
    assert connection.sent() == b""
    assert connection.transport.calls[-1] == "write_eof"
    await connection.end()


async def test_a_client_that_closes_its_side_gets_its_responses(connection: Connection, app: Bodies) -> None:
    connection.transport.receive(GET + POST + b"\r\nabcd")
    connection.transport.receive_eof()
    await settle()
    sent = connection.sent()
    assert sent.count(b"HTTP/1.1 200 OK") == 2
    assert app.bodies == [b"", b"abcd"]
    assert connection.transport.is_closing()


@pytest.mark.parametrize("sent", [b"", b"GET /", POST + b"\r\nab"], ids=["nothing", "half a head", "half a body"])
async def test_a_client_that_leaves_in_the_middle_is_gone(connection: Connection, app: Bodies, sent: bytes) -> None:
    await connection.receive(sent)
    connection.transport.receive_eof()
    await settle()
    assert connection.transport.is_closing()
    assert connection.sent() == b""
    assert app.bodies == []


class Waiting:
    """An ASGI application that starts no response, and keeps what it receives."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while self.messages[-1:] != ["http.disconnect"]:
            self.messages.append((await receive())["type"])


async def test_the_application_is_told_of_a_client_that_closed_its_side() -> None:
    app = Waiting()
    connection = Connection(app)
    await connection.receive(GET)
    connection.transport.receive_eof()
    await settle()
    assert app.messages == ["http.request", HALF_CLOSED]
    await connection.passes(1)
    assert connection.sent() == b"HTTP/1.1 100 Continue\r\n\r\n"  # to which a client that is gone resets
    await connection.passes(100)
    assert connection.sent() == b""
    connection.transport.reset()
    await settle()
    assert app.messages[-1] == "http.disconnect"


async def test_an_http_1_0_client_that_closed_its_side_is_waited_for_5_seconds() -> None:
    connection = Connection(Waiting())
    await connection.receive(b"GET / HTTP/1.0\r\n\r\n")
    connection.transport.receive_eof()
    await connection.passes(4)
    assert not connection.transport.is_closing()
    await connection.passes(1)
    assert connection.transport.is_closing()
    assert connection.sent() == b""
    await settle()


async def test_a_closed_side_with_an_error_on_the_socket_is_a_client_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Reset:
        def getsockopt(self, level: int, option: int) -> int:
            return 104

    connection = Connection(Requests())
    await connection.receive(GET)
    connection.transport.receive_eof()
    await connection.passes(1)
    assert not connection.transport.is_closing()
    monkeypatch.setattr(connection.transport, "get_extra_info", lambda name, default=None: Reset())
    await connection.passes(1)
    assert connection.transport.is_closing()
    await connection.end()


async def test_a_probed_connection_that_is_closed_meanwhile_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed:
        def getsockopt(self, level: int, option: int) -> int:
            raise ValueError  # as uvloop's socket does

    connection = Connection(Waiting())
    await connection.receive(GET)
    connection.transport.receive_eof()
    connection.clock.passes(0.15)
    assert connection.sent() == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.transport.close()
    monkeypatch.setattr(connection.transport, "get_extra_info", lambda name, default=None: Closed())
    connection.clock.passes(0.15)
    await settle()


class Panic(BaseException):
    """As what a library in Rust raises."""


def _raises(defect: BaseException) -> Any:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise defect

    return app


async def _sends_nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """A defect."""


async def _fails_late(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"one", "more_body": True})
    raise ValueError("a prompt")


async def _fails_after(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 500, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})
    raise ValueError("a prompt")


async def _splits(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"a\r\nset-cookie: b")]})


async def _lies(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"one"})


@pytest.mark.parametrize(
    ("app", "keeps"), [(_raises(ValueError("a prompt")), True), (_sends_nothing, True), (_splits, True),
                       (_fails_after, True),
                       (_fails_late, False), (_lies, False), (_raises(Panic()), True), (_raises(SystemExit()), True),
                       (_raises(asyncio.CancelledError()), True)],
)  # fmt: skip
async def test_a_connection_outlives_a_500_and_is_closed_when_a_response_breaks_off(
    app: Any, keeps: bool, caplog: pytest.LogCaptureFixture
) -> None:
    connection = Connection(app)
    await connection.receive(GET)
    sent = connection.sent()
    assert sent.startswith(b"HTTP/1.1 500 " if keeps else b"HTTP/1.1 200 ")
    assert b"prompt" not in sent and b"set-cookie" not in sent and b"connection: close" not in sent
    assert connection.transport.is_closing() is not keeps
    assert len(caplog.messages) == 1
    await connection.end()


async def test_a_stop_closes_idle_connections_at_once_and_others_after_their_response() -> None:
    app = Requests()
    idle, busy = Connection(app), Connection(app)
    await idle.receive(GET.replace(b"/ ", b"/first ", 1))
    await app.end("/first")
    app.paths.clear()
    await busy.receive(GET)
    idle.protocol.shutdown()
    busy.protocol.shutdown()
    await settle()
    assert (idle.transport.is_closing(), busy.transport.is_closing()) == (True, False)
    await busy.receive(GET)  # too late
    await app.end("/")
    assert busy.transport.is_closing()
    assert busy.sent().count(b"HTTP/1.1 200 ") == 1
    assert app.paths == ["/"]


async def test_a_response_that_is_cancelled_breaks_its_connection_off() -> None:
    connection = Connection(Requests())
    await connection.receive(GET)
    (task,) = connection.state.tasks
    task.cancel()
    await asyncio.wait([task])
    assert "abort" in connection.transport.calls
    assert connection.state.tasks == set()


@pytest.mark.parametrize("body", [b"", b"abcd"])
async def test_a_request_to_upgrade_is_served_as_it_is(connection: Connection, app: Bodies, body: bytes) -> None:
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n"
    head = b"POST / HTTP/1.1\r\nHost: h\r\n" + upgrade + (b"Content-Length: 4\r\n" if body else b"") + b"\r\n"
    await connection.receive(head + body[:2])
    await connection.receive(body[2:] + GET)
    assert app.bodies == [body, b""]
    assert connection.sent().count(b"HTTP/1.1 200 OK") == 2


async def test_a_request_to_upgrade_that_says_that_its_body_is_empty_is_whole(
    connection: Connection, app: Bodies
) -> None:
    upgrade = b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 0\r\n"  # Java's client, without a body
    await connection.receive(b"POST / HTTP/1.1\r\nHost: h\r\n" + upgrade + b"\r\n")
    await connection.receive(GET)
    assert app.bodies == [b"", b""]
    assert connection.sent().count(b"HTTP/1.1 200 OK") == 2


async def test_a_request_to_upgrade_whose_framing_cannot_be_read_is_refused(connection: Connection) -> None:
    upgrade = b"Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: identity\r\n"
    await connection.receive(b"POST / HTTP/1.1\r\nHost: h\r\n" + upgrade + b"\r\nabc")
    sent = connection.sent()
    assert sent.startswith(b"HTTP/1.1 400 ") and b"Transfer-Encoding" in sent


@pytest.mark.parametrize("before", [b"", WHOLE_POST[:20]], ids=["nothing", "half a head"])
async def test_a_first_request_that_was_on_its_way_is_served_and_the_connection_closed(
    connection: Connection, app: Bodies, before: bytes
) -> None:
    await connection.receive(before)
    assert connection.protocol.shutdown() is True
    assert connection.protocol.shutdown() is True  # uvicorn does it again
    await connection.receive(WHOLE_POST[len(before) :])
    sent = connection.sent()
    assert sent.startswith(b"HTTP/1.1 200 OK\r\n") and b"\r\nconnection: close\r\n" in sent
    assert app.bodies == [b"abcd"]
    assert connection.transport.is_closing()


async def test_a_head_whose_rest_comes_on_a_connection_that_has_served_is_waited_for(
    connection: Connection, app: Bodies
) -> None:
    await connection.receive(WHOLE_POST + WHOLE_POST[:30])
    connection.sent()
    assert connection.protocol.shutdown() is True
    await connection.receive(WHOLE_POST[30:])
    assert b"\r\nconnection: close\r\n" in connection.sent()
    assert app.bodies == [b"abcd", b"abcd"]


async def test_only_one_request_is_served_after_a_stop(connection: Connection, app: Bodies) -> None:
    connection.protocol.shutdown()
    await connection.receive(WHOLE_POST + WHOLE_POST)
    assert connection.sent().count(b"HTTP/1.1 200 OK") == 1
    assert app.bodies == [b"abcd"]


@pytest.mark.parametrize("before", [b"", WHOLE_POST[:20]], ids=["nothing", "half a head"])
async def test_a_request_that_does_not_come_is_waited_for_no_longer(connection: Connection, before: bytes) -> None:
    await connection.receive(before)
    connection.protocol.shutdown()
    connection.clock.passes(0.4)
    assert not connection.transport.is_closing()
    connection.clock.passes(0.1)
    assert connection.transport.is_closing()
    assert connection.sent() == b""


async def test_a_body_that_is_still_coming_has_its_usual_time(connection: Connection, app: Bodies) -> None:
    connection.protocol.shutdown()
    await connection.receive(WHOLE_POST[:-2])
    await connection.passes(5)
    await connection.receive(WHOLE_POST[-2:])
    assert app.bodies == [b"abcd"]
    assert connection.sent().startswith(b"HTTP/1.1 200 OK")


async def test_an_idle_connection_that_has_served_closes_at_once(connection: Connection) -> None:
    await connection.receive(WHOLE_POST)
    assert connection.protocol.shutdown() is False
    await settle()
    assert connection.transport.is_closing()
