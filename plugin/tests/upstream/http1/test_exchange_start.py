"""An exchange sends its request and waits for the response head."""

import asyncio

import pytest

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.upstream import ReadTimedOut
from tests.upstream.exchanges import AUTHORITY, HEAD, LENGTH_HEAD, new_exchange, start
from tests.upstream.virtual_time_loop import now

PREFIX = f"Error communicating with remote model: {AUTHORITY} "


async def failure_of(task: asyncio.Task[None]) -> str:
    with pytest.raises(UpstreamError) as raised:
        await task
    assert raised.value.status == 424
    return raised.value.reason


async def test_the_exchange_is_there_before_a_response_can_come() -> None:
    exchange, transport = new_exchange()
    task = asyncio.create_task(exchange.start(b"GET / HTTP/1.1\r\n\r\n"))
    await asyncio.sleep(0)
    assert transport.written == [b"GET / HTTP/1.1\r\n\r\n"]
    assert transport.calls == ["set_protocol", "write"]
    assert transport.protocol is exchange
    assert not task.done()
    assert not exchange.reusable and exchange.unfinished_body is None
    task.cancel()


async def test_start_returns_once_the_head_is_complete_however_it_is_cut() -> None:
    for cut in range(1, len(HEAD)):
        exchange, transport = new_exchange()
        task = asyncio.create_task(exchange.start(b"request"))
        await asyncio.sleep(0)
        assert not exchange.bytes_received
        transport.receive(HEAD[:cut])
        await asyncio.sleep(0)
        assert exchange.bytes_received
        assert (task.done(), exchange.status, exchange.headers) == (False, 0, {})
        transport.receive(HEAD[cut:])
        await task
        assert (exchange.status, exchange.keep_alive, exchange.done) == (200, True, False)
        assert exchange.headers == {"transfer-encoding": "chunked"}
        exchange.abort()


async def test_bytes_behind_the_head_are_the_first_of_the_body() -> None:
    exchange, _ = await start(LENGTH_HEAD % 5 + b"ab")
    assert await exchange.read() == b"ab"
    assert not exchange.done
    exchange.stop()


async def test_a_response_without_a_body_is_done_with_its_head() -> None:
    exchange, _ = await start(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert exchange.done and exchange.reusable
    assert await exchange.read() == b""
    exchange.stop()


@pytest.mark.parametrize(
    ("received", "problem"),
    [
        (b"SSH-2.0-OpenSSH", "its first bytes are no status line"),
        (b"HTTP/1.1 200 OK\r\nbad\r\n\r\n", "its head cannot be read"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "its transfer-encoding is not chunked"),
    ],
)
async def test_a_head_that_is_not_http_fails_and_aborts_the_connection(received: bytes, problem: str) -> None:
    exchange, transport = new_exchange()
    task = asyncio.create_task(exchange.start(b""))
    await asyncio.sleep(0)
    transport.receive(received)
    expected = f"{PREFIX}did not respond with valid HTTP/1.1: {problem}. Check the port in the url"
    assert await failure_of(task) == expected
    assert transport.calls[-1] == "abort"
    assert exchange.bytes_received and not exchange.reusable


@pytest.mark.parametrize("received", [b"", b"HTTP/1.1 200 OK\r\nContent-"])
@pytest.mark.parametrize("end", ["receive_eof", "reset", "close"])
async def test_a_connection_that_ends_before_the_head_fails(received: bytes, end: str) -> None:
    exchange, transport = new_exchange()
    task = asyncio.create_task(exchange.start(b""))
    await asyncio.sleep(0)
    if received:
        transport.receive(received)
    getattr(transport, end)()
    assert await failure_of(task) == f"{PREFIX}closed the connection before it responded"
    assert exchange.bytes_received == bool(received)


async def test_a_silent_provider_times_out_and_its_connection_is_aborted() -> None:
    exchange, transport = new_exchange(read_timeout=30)
    with pytest.raises(ReadTimedOut) as raised:
        await exchange.start(b"")
    assert raised.value.reason == (
        f"Error communicating with remote model: Read timeout: {AUTHORITY} sent nothing for 30 s. Raise read_timeout "
        "in the connector's client_config if the model needs longer"
    )
    assert now() == 30
    assert transport.calls[-1] == "abort"


async def test_each_part_of_the_head_moves_the_timeout() -> None:
    exchange, transport = new_exchange(read_timeout=30)
    task = asyncio.create_task(exchange.start(b""))
    for part in (b"HTTP/1.1", b" 200 OK\r\n"):
        await asyncio.sleep(20)
        transport.receive(part)
    with pytest.raises(ReadTimedOut):
        await task
    assert now() == 70


async def test_the_timeout_begins_with_the_request_and_not_with_the_exchange() -> None:
    exchange, _ = new_exchange(read_timeout=30)
    await asyncio.sleep(100)
    with pytest.raises(ReadTimedOut):
        await exchange.start(b"")
    assert now() == 130


async def test_the_first_failure_is_the_one_that_is_raised() -> None:
    exchange, transport = new_exchange()
    task = asyncio.create_task(exchange.start(b""))
    await asyncio.sleep(0)
    transport.receive(b"SSH")
    transport.protocol.connection_lost(ConnectionResetError())
    assert "its first bytes are no status line" in await failure_of(task)


async def test_a_cancelled_start_leaves_no_one_to_wake() -> None:
    exchange, transport = new_exchange()
    task = asyncio.create_task(exchange.start(b""))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    transport.receive(LENGTH_HEAD % 1)
    assert exchange.status == 200
    exchange.stop()
