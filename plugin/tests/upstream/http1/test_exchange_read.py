"""The body of an exchange is read as it comes, and ends as HTTP says."""

import asyncio
from collections.abc import Callable

import pytest

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.upstream.http1.exchange import Exchange
from tests.upstream.exchanges import AUTHORITY, CLOSE_HEAD, HEAD, HIGH_WATER_BYTES, LENGTH_HEAD, start
from tests.upstream.fake_transport import FakeTransport

CUT = f"Error communicating with remote model: {AUTHORITY} closed the connection in the middle of its response"


async def failure_of(exchange: Exchange) -> str:
    with pytest.raises(UpstreamError) as raised:
        await exchange.read()
    return raised.value.reason


async def test_a_read_waits_for_bytes_and_returns_all_that_have_come() -> None:
    exchange, transport = await start(HEAD)
    task = asyncio.create_task(exchange.read())
    await asyncio.sleep(1)
    assert not task.done()
    transport.receive(b"3\r\none\r\n")
    transport.receive(b"3\r\ntwo\r\n")
    assert await task == b"onetwo"
    transport.receive(b"5\r\nthree\r\n")
    assert await exchange.read() == b"three"
    exchange.stop()


async def test_bytes_that_frame_the_body_do_not_end_a_read() -> None:
    exchange, transport = await start(HEAD)
    task = asyncio.create_task(exchange.read())
    await asyncio.sleep(0)
    for part in (b"3;extension\r\n", b"one"):
        assert not task.done()
        transport.receive(part)
        await asyncio.sleep(0)
    assert await task == b"one"
    exchange.stop()


@pytest.mark.parametrize(
    ("head", "parts", "body"),
    [
        (HEAD, [b"3\r\none\r\n", b"3\r\ntwo\r\n0\r\n\r\n"], b"onetwo"),
        (HEAD, [b"3\r\none\r\n", b"0\r\n", b"Trailer: x\r\n\r\n"], b"one"),
        (LENGTH_HEAD % 6, [b"one", b"two"], b"onetwo"),
    ],
    ids=["chunks", "trailers", "length"],
)
async def test_a_body_ends_where_its_form_says(head: bytes, parts: list[bytes], body: bytes) -> None:
    exchange, transport = await start(head)
    for part in parts:
        assert not exchange.done
        transport.receive(part)
    assert exchange.done
    assert [await exchange.read(), await exchange.read(), await exchange.read()] == [body, b"", b""]
    assert transport.calls == []


async def test_the_end_of_the_body_wakes_a_waiting_read() -> None:
    exchange, transport = await start(HEAD)
    task = asyncio.create_task(exchange.read())
    await asyncio.sleep(0)
    transport.receive(b"0\r\n\r\n")
    assert await task == b""


async def test_a_body_without_a_length_ends_with_the_connection() -> None:
    exchange, transport = await start(CLOSE_HEAD + b"one")
    assert await exchange.read() == b"one"
    task = asyncio.create_task(exchange.read())
    await asyncio.sleep(0)
    transport.receive_eof()
    assert await task == b""
    assert exchange.done and not exchange.reusable
    assert transport.calls == ["close"]


@pytest.mark.parametrize("end", [FakeTransport.reset, FakeTransport.cut])
async def test_a_connection_that_breaks_is_not_the_end_of_a_body_without_a_length(
    end: Callable[[FakeTransport], None],
) -> None:
    exchange, transport = await start(CLOSE_HEAD + b"one")
    end(transport)
    await asyncio.sleep(0)
    assert await exchange.read() == b"one"
    assert await failure_of(exchange) == CUT
    assert not exchange.done


@pytest.mark.parametrize("head", [HEAD + b"3\r\none\r\n", LENGTH_HEAD % 4 + b"one"], ids=["chunks", "length"])
@pytest.mark.parametrize("end", ["receive_eof", "reset", "close"])
async def test_a_body_that_is_cut_fails_after_what_has_come_was_read(head: bytes, end: str) -> None:
    exchange, transport = await start(head)
    getattr(transport, end)()
    await asyncio.sleep(0)
    assert await exchange.read() == b"one"
    assert [await failure_of(exchange), await failure_of(exchange)] == [CUT, CUT]
    assert "abort" in transport.calls


async def test_a_cut_wakes_a_waiting_read() -> None:
    exchange, transport = await start(HEAD)
    task = asyncio.create_task(exchange.read())
    await asyncio.sleep(0)
    transport.receive_eof()
    with pytest.raises(UpstreamError, match="in the middle of its response"):
        await task


async def test_chunks_that_cannot_be_parsed_fail_and_abort_the_connection() -> None:
    exchange, transport = await start(HEAD + b"3\r\none\r\n")
    transport.receive(b"no chunk\r\n")
    assert await exchange.read() == b"one"
    assert await failure_of(exchange) == (
        f"Error communicating with remote model: {AUTHORITY} did not respond with valid HTTP/1.1: "
        "its chunks cannot be read. Check the port in the url"
    )
    assert transport.calls == ["abort"]
    assert not exchange.reusable and exchange.unfinished_body is None


async def test_the_end_of_the_connection_after_that_of_the_body_is_no_failure() -> None:
    exchange, transport = await start(LENGTH_HEAD % 3 + b"one")
    assert exchange.reusable
    transport.receive_eof()
    await asyncio.sleep(0)
    assert [await exchange.read(), await exchange.read()] == [b"one", b""]
    assert not exchange.keep_alive and not exchange.reusable


async def test_a_cancelled_read_loses_nothing() -> None:
    exchange, transport = await start(HEAD)
    task = asyncio.create_task(exchange.read())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    transport.receive(b"3\r\none\r\n")
    assert await exchange.read() == b"one"
    exchange.stop()


async def test_reading_is_paused_above_the_high_water_mark_and_resumed_by_a_read() -> None:
    exchange, transport = await start(LENGTH_HEAD % (10 * HIGH_WATER_BYTES))
    transport.receive(b"a" * (HIGH_WATER_BYTES - 1))
    transport.receive(b"b")
    assert transport.calls == []
    transport.receive(b"c")
    assert transport.calls == ["pause_reading"]
    transport.receive(b"d")  # what was on its way already
    assert transport.calls == ["pause_reading"]
    assert await exchange.read() == b"a" * (HIGH_WATER_BYTES - 1) + b"bcd"
    assert transport.calls == ["pause_reading", "resume_reading"]
    transport.receive(b"e" * HIGH_WATER_BYTES)
    assert await exchange.read() == b"e" * HIGH_WATER_BYTES
    assert transport.calls == ["pause_reading", "resume_reading"]
    exchange.stop()


async def test_the_last_bytes_of_a_body_pause_nothing() -> None:
    exchange, transport = await start(LENGTH_HEAD % (HIGH_WATER_BYTES + 1))
    transport.receive(b"a" * (HIGH_WATER_BYTES + 1))
    assert exchange.done and exchange.reusable
    assert transport.calls == []


async def test_a_connection_that_closed_while_it_was_paused_is_not_resumed() -> None:
    exchange, transport = await start(LENGTH_HEAD % (HIGH_WATER_BYTES + 2) + b"a" * (HIGH_WATER_BYTES + 1))
    transport.reset()
    assert len(await exchange.read()) == HIGH_WATER_BYTES + 1
    assert transport.calls == ["reset"]
    assert await failure_of(exchange) == CUT


async def test_a_body_that_ends_while_it_is_paused_is_done() -> None:
    exchange, transport = await start(LENGTH_HEAD % (HIGH_WATER_BYTES + 2) + b"a" * (HIGH_WATER_BYTES + 1))
    transport.receive(b"b")
    assert exchange.done and not exchange.reusable
    assert (await exchange.read())[-2:] == b"ab"
    assert exchange.reusable
    assert transport.calls == ["resume_reading"]
    assert await exchange.read() == b""
    exchange.stop()
