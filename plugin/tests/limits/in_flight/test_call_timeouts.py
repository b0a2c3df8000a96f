"""Times of a provider's call, in virtual time, over the native client whose connections are fake transports."""

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

import pytest

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.model_options import CallLimits
from opensearch_ml_stream.plugin.limits.call_timeouts import in_time
from opensearch_ml_stream.plugin.upstream import ReadTimedOut, UpstreamResponse
from opensearch_ml_stream.plugin.upstream.retries import open_with_retries
from tests.upstream.scripted_upstream import CONFIG, REQUEST, RESPONSE, ScriptedUpstream, read_to_end
from tests.upstream.virtual_time_loop import now, pending_timers

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BIG = b"10001\r\n" + bytes(0x10001) + b"\r\n"
LATE = replace(CONFIG, read_timeout=1_000)


def opened(upstream: ScriptedUpstream, limits: CallLimits) -> AbstractAsyncContextManager[UpstreamResponse]:
    return in_time(upstream.open(REQUEST, LATE, {}, "connector"), limits)


def sends(upstream: ScriptedUpstream, seconds: float, data: bytes) -> None:
    """The provider's first connection receives these bytes at that time."""
    asyncio.get_running_loop().call_later(seconds, lambda: upstream.transports[0].receive(data))


class Sink:
    """Takes bytes until it has had `limit` calls."""

    def __init__(self, limit: int = 100) -> None:
        self.calls: list[bytes] = []
        self._limit = limit

    def __call__(self, data: bytes) -> bool:
        self.calls.append(data)
        return len(self.calls) < self._limit


async def error_of(call: AbstractAsyncContextManager[UpstreamResponse]) -> UpstreamError:
    with pytest.raises(UpstreamError) as raised:
        async with call as response:
            await read_to_end(response)
    return raised.value


def assert_timed_out(error: UpstreamError, limit: str, seconds: float) -> None:
    assert isinstance(error, ReadTimedOut)
    assert (error.status, error.type) == (424, "timeout_exception")
    assert f"{limit}_timeout_seconds" in error.reason
    assert now() == seconds


@pytest.mark.parametrize("head", [b"", HEAD], ids=["no head", "a head alone"])
async def test_the_first_byte_is_that_of_the_body(head: bytes) -> None:
    upstream = ScriptedUpstream([head])
    error = await error_of(opened(upstream, CallLimits(first_byte_timeout_seconds=2.5)))
    assert_timed_out(error, "first_byte", 2.5)
    assert "did not begin within 2.5 s" in error.reason
    assert upstream.transports[0].calls[-1] == "abort"
    assert upstream.limiter.acquired("connector") == 0
    assert pending_timers() == 0


async def test_a_response_that_has_begun_may_take_longer_than_its_first_byte() -> None:
    upstream = ScriptedUpstream([HEAD])
    sends(upstream, 2, b"3\r\none\r\n")
    sends(upstream, 20, b"3\r\ntwo\r\n0\r\n\r\n")
    async with opened(upstream, CallLimits(first_byte_timeout_seconds=3)) as response:
        assert await read_to_end(response) == b"onetwo"
    assert now() == 20


async def test_the_time_to_the_first_byte_holds_all_retries() -> None:
    upstream = ScriptedUpstream()  # no connection comes about
    config = replace(CONFIG, max_retry_times=-1, retry_backoff_millis=1_000, retry_timeout_seconds=1_000)
    retried = open_with_retries(upstream, REQUEST, config, {}, "connector")
    error = await error_of(in_time(retried, CallLimits(first_byte_timeout_seconds=4.5)))
    assert_timed_out(error, "first_byte", 4.5)
    assert len(upstream.connects) == 5


async def test_the_time_to_the_first_byte_holds_the_wait_for_a_connection() -> None:
    upstream = ScriptedUpstream([HEAD])
    await upstream.limiter.acquire("connector", 1, 1)
    call = in_time(
        upstream.open(REQUEST, replace(CONFIG, max_connection=1), {}, "connector"), CallLimits(total_timeout_seconds=3)
    )
    assert_timed_out(await error_of(call), "total", 3)


async def test_silence_counts_from_the_first_byte_on() -> None:
    upstream = ScriptedUpstream([HEAD])
    sends(upstream, 100, b"3\r\none\r\n")
    sends(upstream, 101.5, b"3\r\ntwo\r\n")
    error = await error_of(opened(upstream, CallLimits(between_chunks_timeout_seconds=2)))
    assert_timed_out(error, "between_chunks", 103.5)
    assert "provider.example:80 sent nothing for 2 s in the middle of its response" in error.reason


async def test_the_smaller_one_of_read_timeout_and_silence_counts() -> None:
    upstream = ScriptedUpstream([HEAD + b"3\r\none\r\n"])
    limits = CallLimits(between_chunks_timeout_seconds=50)
    error = await error_of(in_time(upstream.open(REQUEST, CONFIG, {}, "connector"), limits))
    assert (error.type, now()) == ("status_exception", 30)
    assert "Raise read_timeout in the connector's client_config" in error.reason


async def test_a_response_that_drips_ends_with_the_total_time() -> None:
    upstream = ScriptedUpstream([HEAD])
    for second in range(10):
        sends(upstream, second + 0.5, b"3\r\nabc\r\n")
    sink = Sink()
    with pytest.raises(ReadTimedOut) as raised:
        async with opened(upstream, CallLimits(total_timeout_seconds=4)) as response:
            await response.pump(sink)
    assert_timed_out(raised.value, "total", 4)
    assert sink.calls == [b"abc"] * 4
    assert upstream.transports[0].calls[-1] == "abort"


async def test_the_total_time_counts_before_the_first_byte_too() -> None:
    upstream = ScriptedUpstream([b""])
    limits = CallLimits(total_timeout_seconds=3, first_byte_timeout_seconds=5)
    assert_timed_out(await error_of(opened(upstream, limits)), "total", 3)


async def test_a_slow_reader_does_not_stop_the_clock() -> None:
    upstream = ScriptedUpstream([HEAD + BIG])
    async with opened(upstream, CallLimits(total_timeout_seconds=4)) as response:
        await asyncio.sleep(4.5)
        assert upstream.transports[0].calls[-2:] == ["pause_reading", "abort"]  # the provider is let go meanwhile
        assert len(await response.read()) == 0x10001
        with pytest.raises(ReadTimedOut):
            await response.read()


async def test_a_body_that_has_come_in_time_may_be_read_later() -> None:
    upstream = ScriptedUpstream([RESPONSE])
    async with opened(upstream, CallLimits(total_timeout_seconds=4, between_chunks_timeout_seconds=1)) as response:
        await asyncio.sleep(10)
        assert await read_to_end(response) == b"ok"
    assert len(upstream.pool) == 1


async def test_a_call_that_ends_in_time_leaves_no_timer() -> None:
    upstream = ScriptedUpstream([RESPONSE])
    every = CallLimits(total_timeout_seconds=9, first_byte_timeout_seconds=8, between_chunks_timeout_seconds=7)
    async with opened(upstream, every) as response:
        sink = Sink()
        assert await response.pump(sink)
        assert sink.calls == [b"ok"]
    upstream.close()
    assert pending_timers() == 0


async def test_an_error_status_is_no_first_byte_to_wait_for() -> None:
    upstream = ScriptedUpstream([b"HTTP/1.1 500 Oh\r\nContent-Length: 5\r\n\r\n"])
    async with opened(upstream, CallLimits(first_byte_timeout_seconds=2)) as response:
        assert (response.status, now()) == (500, 0)


@pytest.mark.parametrize("reads", [True, False])
async def test_a_body_that_breaks_off_before_its_first_byte_fails_where_it_is_read(reads: bool) -> None:
    upstream = ScriptedUpstream([HEAD])
    asyncio.get_running_loop().call_later(1, lambda: upstream.transports[0].reset())
    async with opened(upstream, CallLimits(first_byte_timeout_seconds=2)) as response:
        assert response.headers == {"transfer-encoding": "chunked"}
        with pytest.raises(UpstreamError, match="in the middle of its response"):
            await (response.read() if reads else response.pump(lambda data: True))


async def test_a_sink_that_stops_at_the_first_bytes_gets_the_rest_later() -> None:
    upstream = ScriptedUpstream([HEAD + b"3\r\none\r\n"])
    sends(upstream, 1, b"3\r\ntwo\r\n0\r\n\r\n")
    async with opened(upstream, CallLimits(first_byte_timeout_seconds=2)) as response:
        first, rest = Sink(1), Sink()
        assert await response.pump(first) is False
        assert await response.pump(rest) is True
        assert (first.calls, rest.calls) == ([b"one"], [b"two"])


async def test_a_call_that_is_given_up_is_no_timeout() -> None:
    upstream = ScriptedUpstream([b""])
    task = asyncio.create_task(error_of(opened(upstream, CallLimits(first_byte_timeout_seconds=5))))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (upstream.limiter.acquired("connector"), pending_timers()) == (0, 0)
