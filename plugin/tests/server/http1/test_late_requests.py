"""A stop of the server waits half a second for the request of a client that has just connected."""

import pytest

from tests.server.client_connection import Bodies, Connection, settle

POST = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nabcd"


@pytest.mark.parametrize("before", [b"", POST[:20]], ids=["nothing", "half a head"])
async def test_a_first_request_that_was_on_its_way_is_served_and_the_connection_closed(
    connection: Connection, app: Bodies, before: bytes
) -> None:
    await connection.receive(before)
    assert connection.protocol.shutdown() is True
    assert connection.protocol.shutdown() is True  # uvicorn does it again
    await connection.receive(POST[len(before) :])
    sent = connection.sent()
    assert sent.startswith(b"HTTP/1.1 200 OK\r\n") and b"\r\nconnection: close\r\n" in sent
    assert app.bodies == [b"abcd"]
    assert connection.transport.is_closing()


async def test_a_head_whose_rest_comes_on_a_connection_that_has_served_is_waited_for(
    connection: Connection, app: Bodies
) -> None:
    await connection.receive(POST + POST[:30])
    connection.sent()
    assert connection.protocol.shutdown() is True
    await connection.receive(POST[30:])
    assert b"\r\nconnection: close\r\n" in connection.sent()
    assert app.bodies == [b"abcd", b"abcd"]


async def test_only_one_request_is_served_after_a_stop(connection: Connection, app: Bodies) -> None:
    connection.protocol.shutdown()
    await connection.receive(POST + POST)
    assert connection.sent().count(b"HTTP/1.1 200 OK") == 1
    assert app.bodies == [b"abcd"]


@pytest.mark.parametrize("before", [b"", POST[:20]], ids=["nothing", "half a head"])
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
    await connection.receive(POST[:-2])
    await connection.passes(5)
    await connection.receive(POST[-2:])
    assert app.bodies == [b"abcd"]
    assert connection.sent().startswith(b"HTTP/1.1 200 OK")


async def test_an_idle_connection_that_has_served_closes_at_once(connection: Connection) -> None:
    await connection.receive(POST)
    assert connection.protocol.shutdown() is False
    await settle()
    assert connection.transport.is_closing()
