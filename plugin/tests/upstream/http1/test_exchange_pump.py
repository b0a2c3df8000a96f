"""A sink gets the bytes of a body in the connection's own callback, without a task that is woken for them."""

import asyncio

import pytest

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.upstream import pump_by_reading
from opensearch_ml_stream.plugin.upstream.http1.exchange import Exchange
from tests.upstream.exchanges import CLOSE_HEAD, HEAD, HIGH_WATER_BYTES, LENGTH_HEAD, start


class RecordingSink:
    """Takes bytes until it has had `limit` calls."""

    def __init__(self, limit: int = 100) -> None:
        self.calls: list[bytes] = []
        self._limit = limit

    def __call__(self, data: bytes) -> bool:
        self.calls.append(data)
        return len(self.calls) < self._limit


async def pumping(exchange: Exchange, sink: RecordingSink) -> asyncio.Task[bool]:
    task = asyncio.create_task(exchange.pump(sink))
    await asyncio.sleep(0)
    return task


async def test_bytes_are_handed_over_at_once_and_the_end_is_true() -> None:
    exchange, transport = await start(HEAD)
    sink = RecordingSink()
    task = await pumping(exchange, sink)
    transport.receive(b"3\r\none\r\n")
    assert sink.calls == [b"one"]  # no task has run in between
    transport.receive(b"3\r\ntwo\r\n")
    assert sink.calls == [b"one", b"two"]
    await asyncio.sleep(0)
    assert not task.done()
    transport.receive(b"0\r\n\r\n")
    assert await task is True
    assert sink.calls == [b"one", b"two"]
    assert exchange.reusable
    exchange.stop()


async def test_bytes_that_have_come_before_go_first() -> None:
    exchange, transport = await start(LENGTH_HEAD % 9 + b"one")
    transport.receive(b"two")
    sink = RecordingSink()
    task = await pumping(exchange, sink)
    assert sink.calls == [b"onetwo"]
    transport.receive(b"end")
    assert await task is True
    assert sink.calls == [b"onetwo", b"end"]


@pytest.mark.parametrize("head", [LENGTH_HEAD % 3 + b"one", LENGTH_HEAD % 0], ids=["unread", "empty"])
async def test_a_body_that_is_over_is_handed_over_without_waiting(head: bytes) -> None:
    exchange, _ = await start(head)
    sink = RecordingSink()
    assert await exchange.pump(sink) is True
    assert sink.calls == ([b"one"] if head.endswith(b"one") else [])
    assert await exchange.pump(sink) is True


async def test_a_sink_that_has_enough_stops_the_pump_and_the_rest_is_kept() -> None:
    exchange, transport = await start(HEAD)
    sink = RecordingSink(limit=2)
    task = await pumping(exchange, sink)
    for part in (b"3\r\none\r\n", b"3\r\ntwo\r\n", b"5\r\nthree\r\n"):
        transport.receive(part)
    assert await task is False
    assert sink.calls == [b"one", b"two"]
    assert await exchange.read() == b"three"
    more = RecordingSink()
    task = await pumping(exchange, more)
    transport.receive(b"4\r\nfour\r\n0\r\n\r\n")
    assert await task is True
    assert more.calls == [b"four"]


async def test_a_sink_that_has_enough_of_what_was_unread_stops_the_pump() -> None:
    exchange, transport = await start(LENGTH_HEAD % 6 + b"one")
    sink = RecordingSink(limit=1)
    assert await exchange.pump(sink) is False
    transport.receive(b"two")
    assert sink.calls == [b"one"]
    assert await exchange.read() == b"two"


async def test_a_sink_that_has_enough_with_the_last_bytes_learns_the_end_from_the_next_pump() -> None:
    exchange, transport = await start(LENGTH_HEAD % 3)
    sink = RecordingSink(limit=1)
    task = await pumping(exchange, sink)
    transport.receive(b"one")
    assert await task is False
    assert await exchange.pump(sink) is True
    assert sink.calls == [b"one"]


async def test_bytes_that_frame_the_body_are_no_call_of_the_sink() -> None:
    exchange, transport = await start(HEAD)
    sink = RecordingSink()
    task = await pumping(exchange, sink)
    for part in (b"3;x\r\n", b"one", b"\r\n", b"0\r\n", b"\r\n"):
        transport.receive(part)
    assert await task is True
    assert sink.calls == [b"one"]


async def test_what_a_pump_hands_over_never_pauses_the_provider() -> None:
    exchange, transport = await start(LENGTH_HEAD % (4 * HIGH_WATER_BYTES))
    task = await pumping(exchange, RecordingSink())
    for _ in range(4):
        transport.receive(bytes(HIGH_WATER_BYTES))
    assert await task is True
    assert transport.calls == []


async def test_a_pump_over_more_than_the_high_water_mark_resumes_reading() -> None:
    exchange, transport = await start(LENGTH_HEAD % (HIGH_WATER_BYTES + 9) + bytes(HIGH_WATER_BYTES + 1))
    task = await pumping(exchange, RecordingSink())
    assert transport.calls == ["resume_reading"]
    transport.receive(bytes(8))
    assert await task is True


async def test_a_cut_ends_the_pump_with_an_error() -> None:
    exchange, transport = await start(HEAD)
    sink = RecordingSink()
    task = await pumping(exchange, sink)
    transport.receive(b"3\r\none\r\n")
    transport.receive_eof()
    with pytest.raises(UpstreamError, match="in the middle of its response"):
        await task
    assert sink.calls == [b"one"]


async def test_a_cut_that_was_seen_before_the_pump_is_raised_after_the_unread_bytes() -> None:
    exchange, transport = await start(HEAD + b"3\r\none\r\n")
    transport.receive_eof()
    sink = RecordingSink()
    with pytest.raises(UpstreamError, match="in the middle of its response"):
        await exchange.pump(sink)
    assert sink.calls == [b"one"]


async def test_the_end_of_the_connection_ends_the_pump_of_a_body_without_a_length() -> None:
    exchange, transport = await start(CLOSE_HEAD)
    sink = RecordingSink()
    task = await pumping(exchange, sink)
    transport.receive(b"one")
    transport.receive_eof()
    assert await task is True
    assert sink.calls == [b"one"]


async def test_a_cancelled_pump_leaves_its_sink_alone() -> None:
    exchange, transport = await start(HEAD)
    sink = RecordingSink()
    task = await pumping(exchange, sink)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    transport.receive(b"3\r\none\r\n")
    assert sink.calls == []
    assert await exchange.read() == b"one"
    exchange.stop()


@pytest.mark.parametrize(("limit", "ended", "calls"), [(9, True, [b"a", b"b"]), (2, False, [b"a", b"b"])])
async def test_a_response_that_can_only_be_read_can_be_pumped_too(limit: int, ended: bool, calls: list[bytes]) -> None:
    parts = iter([b"a", b"b", b""])

    async def read() -> bytes:
        return next(parts)

    sink = RecordingSink(limit)
    assert await pump_by_reading(read, sink) is ended
    assert sink.calls == calls


@pytest.mark.parametrize("limit", [1, 100])
async def test_bytes_that_come_with_a_fault_reach_the_sink_before_it_is_raised(limit: int) -> None:
    exchange, transport = await start(HEAD)
    sink = RecordingSink(limit)
    task = await pumping(exchange, sink)
    transport.receive(b"3\r\none\r\nzz\r\n")
    assert sink.calls == [b"one"]
    if limit == 1:
        assert await task is False
        task = await pumping(exchange, sink)
    with pytest.raises(UpstreamError, match="its chunks cannot be read"):
        await task


async def test_bytes_that_come_with_a_fault_can_be_read_before_it_is_raised() -> None:
    exchange, transport = await start(HEAD + b"3\r\none\r\n")
    transport.receive(b"3\r\ntwo\r\nzz\r\n")
    assert await exchange.read() == b"onetwo"
    with pytest.raises(UpstreamError, match="its chunks cannot be read"):
        await exchange.read()
