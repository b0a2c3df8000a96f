"""A provider may be silent for the read timeout, not longer; a slow reader's time is not the provider's."""

import asyncio

import pytest

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.upstream import ReadTimedOut
from opensearch_ml_stream.plugin.upstream.http1.exchange import Exchange
from tests.upstream.exchanges import AUTHORITY, HEAD, HIGH_WATER_BYTES, LENGTH_HEAD, start
from tests.upstream.virtual_time_loop import now, pending_timers


async def time_of_failure(exchange: Exchange) -> float:
    with pytest.raises(ReadTimedOut) as raised:
        while await exchange.read():
            pass
    assert f"{AUTHORITY} sent nothing for 30 s" in raised.value.reason
    return now()


async def test_every_read_of_the_body_moves_the_timeout() -> None:
    exchange, transport = await start(HEAD, read_timeout=30)
    loop = asyncio.get_running_loop()
    loop.call_later(20, transport.receive, b"3\r\none\r\n")
    loop.call_later(40, transport.receive, b"3\r\ntwo\r\n")
    assert await time_of_failure(exchange) == 70
    assert transport.calls == ["abort"]


async def test_bytes_that_only_frame_the_body_move_the_timeout_too() -> None:
    exchange, transport = await start(HEAD, read_timeout=30)
    asyncio.get_running_loop().call_later(29, transport.receive, b"3;keep-alive")
    assert await time_of_failure(exchange) == 59


async def test_bytes_that_a_sink_takes_move_the_timeout_too() -> None:
    exchange, transport = await start(HEAD, read_timeout=30)
    asyncio.get_running_loop().call_later(29, transport.receive, b"3\r\none\r\n")
    with pytest.raises(ReadTimedOut):
        await exchange.pump(lambda data: True)
    assert now() == 59


async def test_unread_bytes_are_read_before_the_failure() -> None:
    exchange, transport = await start(HEAD, read_timeout=30)
    transport.receive(b"3\r\none\r\n")
    await asyncio.sleep(100)
    assert transport.calls == ["abort"]
    assert await exchange.read() == b"one"
    with pytest.raises(ReadTimedOut):
        await exchange.read()


async def test_a_pause_for_a_slow_reader_does_not_count() -> None:
    exchange, transport = await start(LENGTH_HEAD % (2 * HIGH_WATER_BYTES), read_timeout=30)
    transport.receive(bytes(HIGH_WATER_BYTES + 1))
    await asyncio.sleep(100)
    assert len(await exchange.read()) == HIGH_WATER_BYTES + 1
    assert await time_of_failure(exchange) == 130
    assert transport.calls == ["pause_reading", "resume_reading", "abort"]


async def test_silence_after_the_end_of_the_body_is_none() -> None:
    exchange, transport = await start(LENGTH_HEAD % 3, read_timeout=30)
    transport.receive(b"one")
    await asyncio.sleep(100)
    assert exchange.reusable
    assert transport.calls == []
    assert [await exchange.read(), await exchange.read()] == [b"one", b""]


async def test_a_failed_exchange_does_not_time_out() -> None:
    exchange, transport = await start(HEAD, read_timeout=30)
    transport.receive_eof()
    await asyncio.sleep(100)
    assert transport.calls == ["abort", "close"]
    with pytest.raises(UpstreamError, match="in the middle of its response"):
        await exchange.read()


async def test_a_stopped_exchange_does_not_time_out() -> None:
    exchange, transport = await start(HEAD, read_timeout=30)
    exchange.stop()
    exchange.stop()
    assert pending_timers() == 0
    await asyncio.sleep(100)
    assert transport.calls == []
    transport.receive(b"3\r\none\r\n")
    assert await exchange.read() == b"one"


async def test_an_aborted_exchange_has_no_timer_and_fails_who_still_reads() -> None:
    exchange, transport = await start(HEAD, read_timeout=30)
    task = asyncio.create_task(exchange.read())
    await asyncio.sleep(0)
    exchange.abort()
    assert pending_timers() == 0
    with pytest.raises(UpstreamError, match="in the middle of its response"):
        await task
    await asyncio.sleep(100)
    assert set(transport.calls) == {"abort"}


async def test_a_shorter_limit_counts_from_the_last_byte_and_not_from_where_it_was_set() -> None:
    exchange, transport = await start(HEAD, read_timeout=30)
    transport.receive(b"3\r\none\r\n")
    await asyncio.sleep(4)
    exchange.limit_silence(10)
    assert pending_timers() == 1
    assert await exchange.read() == b"one"
    with pytest.raises(ReadTimedOut, match=f"{AUTHORITY} sent nothing for 10 s in the middle of its response"):
        await exchange.read()
    assert now() == 10


async def test_a_limit_that_has_passed_already_fails_at_once() -> None:
    exchange, _ = await start(HEAD, read_timeout=30)
    await asyncio.sleep(20)
    exchange.limit_silence(10)
    with pytest.raises(ReadTimedOut, match="for 10 s"):
        await exchange.read()
    assert now() == 20


async def test_a_longer_limit_or_one_after_the_end_changes_nothing() -> None:
    exchange, _ = await start(HEAD, read_timeout=30)
    exchange.limit_silence(40)
    assert await time_of_failure(exchange) == 30
    whole, transport = await start(LENGTH_HEAD % 3 + b"one", read_timeout=30)
    whole.limit_silence(1)
    await asyncio.sleep(100)
    assert (await whole.read(), transport.calls) == (b"one", [])


async def test_a_response_that_is_failed_ends_with_that_error_after_what_has_come() -> None:
    exchange, transport = await start(HEAD, read_timeout=30)
    transport.receive(b"3\r\none\r\n")
    error = UpstreamError("enough")
    exchange.fail(error)
    assert (transport.calls, pending_timers()) == (["abort"], 0)
    assert await exchange.read() == b"one"
    with pytest.raises(UpstreamError, match="enough"):
        await exchange.read()


async def test_a_whole_response_cannot_be_failed() -> None:
    exchange, _ = await start(LENGTH_HEAD % 3 + b"one", read_timeout=30)
    exchange.fail(UpstreamError("enough"))
    assert [await exchange.read(), await exchange.read()] == [b"one", b""]
    assert exchange.reusable
    exchange.stop()
