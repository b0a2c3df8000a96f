"""An exchange whose request is relayed: every head is seen, and the request goes out in parts."""

import asyncio
from math import inf

import pytest

from opensearch_ml_stream.plugin.upstream.http1.exchange import Exchange
from opensearch_ml_stream.plugin.upstream.network_errors import BrokenConnection
from tests.upstream.exchanges import HEAD, new_exchange
from tests.upstream.fake_transport import FakeTransport
from tests.upstream.virtual_time_loop import now

INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"


def begun(method: str = "GET") -> tuple[Exchange, FakeTransport]:
    exchange, transport = new_exchange(inf, method)
    exchange.begin(b"head and a part")
    return exchange, transport


async def test_interim_heads_come_one_by_one_before_the_final_one() -> None:
    exchange, transport = begun()
    assert transport.written == [b"head and a part"]
    for received in (INTERIM, INTERIM + b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"2\r\nab\r\n"):
        task = asyncio.create_task(exchange.next_head())
        await asyncio.sleep(0)
        transport.receive(received)
        head = await task
        assert (head.status, head.fields) == (103, [("link", "x")])
    assert exchange.status == 200
    assert [(await exchange.next_head()).status for _ in range(2)] == [100, 200]
    assert await exchange.read() == b"ab"


async def test_silence_before_and_in_a_response_is_not_limited() -> None:
    exchange, transport = begun()
    await asyncio.sleep(1_000_000)
    transport.receive(HEAD)
    await exchange.next_head()
    await asyncio.sleep(1_000_000)
    transport.receive(b"0\r\n\r\n")
    assert now() == 2_000_000
    assert await exchange.read() == b""


async def test_a_connection_that_ends_before_the_head_ends_the_wait_for_it() -> None:
    exchange, transport = begun()
    task = asyncio.create_task(exchange.next_head())
    await asyncio.sleep(0)
    transport.reset()
    with pytest.raises(BrokenConnection) as raised:
        await task
    assert raised.value.problem == "it closed the connection before it responded"


async def test_drain_waits_while_the_transport_is_full() -> None:
    exchange, transport = begun("POST")
    await exchange.drain()
    exchange.pause_writing()
    exchange.write(b"more")
    task = asyncio.create_task(exchange.drain())
    await asyncio.sleep(60)
    assert not task.done()
    exchange.resume_writing()
    await task
    assert transport.written[1:] == [b"more"]


async def test_drain_ends_with_the_connection() -> None:
    exchange, transport = begun("POST")
    exchange.pause_writing()
    task = asyncio.create_task(exchange.drain())
    await asyncio.sleep(0)
    transport.reset()
    with pytest.raises(BrokenConnection):
        await task


async def test_a_body_is_at_its_end_when_all_of_it_was_read_and_has_its_trailers_then() -> None:
    exchange, transport = begun()
    transport.receive(HEAD + b"3\r\nabc\r\n")
    assert not exchange.at_end
    transport.receive(b"0\r\nX-Sum: 7\r\n\r\n")
    assert exchange.done and not exchange.at_end
    assert await exchange.read() == b"abc"
    assert exchange.at_end
    assert exchange.trailers == [(b"x-sum", b"7")]


async def test_a_response_to_head_ends_with_its_head() -> None:
    exchange, transport = begun("HEAD")
    transport.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    assert await exchange.read() == b""
    assert exchange.reusable and exchange.trailers == []
