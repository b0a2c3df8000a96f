"""Requests that ask for another protocol, as Java's client does: they are served by HTTP/1.1."""

import pytest

from tests.server.client_connection import Bodies, Connection

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


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
