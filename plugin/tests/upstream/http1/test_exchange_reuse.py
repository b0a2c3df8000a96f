"""When the connection of an exchange may serve another one."""

import asyncio
from collections.abc import Callable

import pytest

from tests.upstream.exchanges import CLOSE_HEAD, HEAD, HIGH_WATER_BYTES, LENGTH_HEAD, start
from tests.upstream.fake_transport import FakeTransport

CLOSING_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n"


async def test_a_whole_response_leaves_a_connection_that_can_be_reused() -> None:
    exchange, transport = await start(LENGTH_HEAD % 3)
    assert not exchange.reusable
    transport.receive(b"one")
    assert exchange.reusable
    assert exchange.unfinished_body is None
    exchange.stop()


def leave_bytes_unsent(transport: FakeTransport) -> None:
    transport.write_buffer_size = 1


@pytest.mark.parametrize(
    ("received", "event"),
    [
        (CLOSING_HEAD + b"one", lambda transport: None),
        (LENGTH_HEAD % 3 + b"on", lambda transport: None),
        (LENGTH_HEAD % 3 + b"one and more", lambda transport: None),
        (LENGTH_HEAD % 3 + b"one", lambda transport: transport.receive(b"more")),
        (HEAD + b"0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", lambda transport: None),
        (CLOSE_HEAD + b"one", FakeTransport.receive_eof),
        (LENGTH_HEAD % 3 + b"one", FakeTransport.close),
        (LENGTH_HEAD % 3 + b"one", FakeTransport.receive_eof),
        (LENGTH_HEAD % 3 + b"one", leave_bytes_unsent),
        (HEAD + b"0\r\n\r\n", lambda transport: transport.receive(b"more")),
    ],
    ids=[
        "the provider closes it", "incomplete", "excess", "excess later", "a second response",
        "ended with the connection", "closing", "closed by the provider", "request not sent", "excess behind chunks",
    ],
)  # fmt: skip
async def test_a_connection_is_not_reused(received: bytes, event: Callable[[FakeTransport], None]) -> None:
    exchange, transport = await start(received)
    event(transport)
    assert not exchange.reusable
    exchange.stop()


async def test_an_aborted_exchange_is_not_reusable_even_if_its_body_is_whole() -> None:
    exchange, _ = await start(LENGTH_HEAD % 3 + b"one")
    exchange.abort()
    assert exchange.done and not exchange.reusable


async def test_a_body_that_goes_on_is_unfinished_once_all_that_came_was_read() -> None:
    exchange, transport = await start(HEAD + b"3\r\none\r\n")
    assert exchange.unfinished_body is None
    await exchange.read()
    body = exchange.unfinished_body
    assert body is not None and not body.done
    transport.receive(b"3\r\ntwo\r\n")
    assert exchange.unfinished_body is None
    await exchange.read()
    assert exchange.unfinished_body is body
    exchange.stop()


async def test_a_body_that_a_sink_takes_is_unfinished_too() -> None:
    exchange, transport = await start(HEAD)
    task = asyncio.create_task(exchange.pump(lambda data: False))
    await asyncio.sleep(0)
    transport.receive(b"3\r\none\r\n")
    assert await task is False
    assert exchange.unfinished_body is not None
    exchange.stop()


@pytest.mark.parametrize(
    ("received", "event"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n", lambda transport: None),
        (HEAD + b"0\r\n\r\n", lambda transport: None),
        (HEAD, FakeTransport.close),
        (HEAD, FakeTransport.receive_eof),
        (HEAD, lambda transport: transport.receive(b"no chunk")),
        (CLOSE_HEAD, FakeTransport.receive_eof),
    ],
    ids=["the provider closes it", "done", "closing", "cut", "malformed", "ended with the connection"],
)
async def test_no_body_is_unfinished_on_a_connection_that_is_of_no_use(
    received: bytes, event: Callable[[FakeTransport], None]
) -> None:
    exchange, transport = await start(received)
    event(transport)
    assert exchange.unfinished_body is None
    exchange.stop()


async def test_no_body_is_unfinished_while_reading_is_paused() -> None:
    exchange, _ = await start(LENGTH_HEAD % (2 * HIGH_WATER_BYTES) + bytes(HIGH_WATER_BYTES + 1))
    assert exchange.unfinished_body is None
    await exchange.read()
    assert exchange.unfinished_body is not None
    exchange.stop()
