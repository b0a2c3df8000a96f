"""How long a runtime may be silent, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from opensearch_ml_stream.connectors.model_options import CallLimits
from opensearch_ml_stream.extensions.runtimes.service.runtime_calls import RuntimeCalls
from opensearch_ml_stream.extensions.runtimes.service.runtime_response import RuntimeResponse
from opensearch_ml_stream.plugin.limits.call_timeouts import in_time
from opensearch_ml_stream.plugin.upstream import ReadTimedOut
from opensearch_ml_stream.runtimes.frames import INITIAL_CREDIT, Kind
from tests.runtimes.calls.scripted_host import (
    READ,
    Client,
    Frame,
    ScriptedHost,
    Sink,
    opened_stream,
    request_to,
)
from tests.upstream.virtual_time_loop import now, pending_timers

SILENT_SECONDS = 10


class Arriving:
    """A response, and what it has sent to the process."""

    def __init__(self) -> None:
        self.sent: list[Kind] = []
        self.response = RuntimeResponse("m", lambda kind, payload: self.sent.append(kind), is_stream=True)
        self.arrive(b"{}")

    def arrive(self, *payloads: bytes) -> None:
        self.response.arrived = [*payloads]
        self.response.deliver()

    async def silent_at(self) -> float:
        with pytest.raises(ReadTimedOut):
            while await self.response.read():
                pass
        return now()


async def test_silence_is_counted_from_the_last_response_and_the_call_is_cancelled() -> None:
    one = Arriving()
    one.response.limit_silence(10)
    asyncio.get_running_loop().call_later(7, one.arrive, b"{}")
    assert await one.silent_at() == 17
    assert one.sent == [Kind.CANCEL]
    assert pending_timers() == 0


async def test_silence_is_not_counted_while_the_process_has_no_credit_but_anew_from_then_on() -> None:
    one = Arriving()
    one.response.limit_silence(10)
    one.arrive(b"x" * INITIAL_CREDIT)
    await asyncio.sleep(95)  # the timer looks again at 100
    assert await one.silent_at() == 105
    assert one.sent == [Kind.CREDIT, Kind.CANCEL]


async def test_the_shorter_of_two_limits_holds_whichever_comes_first() -> None:
    for limits in ((10, 4), (4, 10)):
        one, began = Arriving(), now()
        for limit in limits:
            one.response.limit_silence(limit)
        assert await one.silent_at() - began == 4


async def test_a_response_that_is_over_has_no_timer() -> None:
    one = Arriving()
    one.response.limit_silence(10)
    one.response.end()
    one.arrive()
    one.response.limit_silence(5)
    assert await one.response.read() == b"{}\0"
    await asyncio.sleep(20)
    assert await one.response.read() == b""
    assert pending_timers() == 0


async def test_a_runtime_that_does_not_respond_in_time_is_cancelled(calls: RuntimeCalls, host: ScriptedHost) -> None:
    limits = CallLimits(first_byte_timeout_seconds=SILENT_SECONDS)
    opening = in_time(calls.open(request_to()), limits)
    entering = asyncio.ensure_future(opening.__aenter__())
    begin = await host.next_call()
    with pytest.raises(ReadTimedOut, match="did not begin"):
        await entering
    assert (await host.next_frame())[:2] == (begin.call, Kind.CANCEL)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (CallLimits(between_chunks_timeout_seconds=SILENT_SECONDS), "model m sent nothing for 10 s in the middle"),
        (CallLimits(total_timeout_seconds=SILENT_SECONDS), "was not complete within 10 s"),
    ],
)
async def test_a_runtime_that_falls_silent_or_takes_too_long_is_cancelled(
    calls: RuntimeCalls, host: ScriptedHost, limits: CallLimits, reason: str
) -> None:
    opening = in_time(calls.open(request_to()), limits)
    entering = asyncio.ensure_future(opening.__aenter__())
    begin = await host.next_call()
    begin.data(b"1")
    response = await entering
    sink = Sink()
    with pytest.raises(ReadTimedOut, match=reason):
        await response.pump(sink)
    assert sink.taken == [b"1\0"]
    assert (await host.next_frame())[:2] == (begin.call, Kind.CANCEL)
    await opening.__aexit__(None, None, None)


async def test_a_slow_consumer_is_no_silence_of_the_runtime(calls: RuntimeCalls, host: ScriptedHost) -> None:
    async with opened_stream(calls, host) as (response, begin):
        response.limit_silence(SILENT_SECONDS)
        begin.data(b"x" * INITIAL_CREDIT)
        sink = Sink(enough=1)
        while sum(map(len, sink.taken)) < INITIAL_CREDIT:
            assert not await response.pump(sink)
        await asyncio.sleep(3 * SILENT_SECONDS)  # the process has no credit meanwhile
        reading = asyncio.ensure_future(response.read())
        assert (await host.next_frame()).kind == Kind.CREDIT
        begin.data(b"2")
        assert await reading == b"2\0"
        with pytest.raises(ReadTimedOut):
            await response.read()


async def test_while_the_model_waits_for_its_client_it_is_not_silent(calls: RuntimeCalls, host: ScriptedHost) -> None:
    client = Client()
    async with call_with_silence(calls, host, client, SILENT_SECONDS) as (response, begin):
        begin.reply(READ)
        await client.waits.wait()
        await asyncio.sleep(3 * SILENT_SECONDS)
        assert not response.is_over
        client.requests.put_nowait(b"1")
        assert (await host.next_frame()).kind == Kind.INPUT
        with pytest.raises(ReadTimedOut):
            await response.read()


@asynccontextmanager
async def call_with_silence(
    calls: RuntimeCalls, host: ScriptedHost, client: Client, seconds: float
) -> AsyncIterator[tuple[RuntimeResponse, Frame]]:
    call = calls.open(request_to(), client.next)
    entering = asyncio.ensure_future(call.__aenter__())
    begin = await host.next_frame()
    begin.data(b"{}")
    response = await entering
    assert isinstance(response, RuntimeResponse)
    await response.read()
    response.limit_silence(seconds)
    try:
        yield response, begin
    finally:
        await call.__aexit__(None, None, None)
