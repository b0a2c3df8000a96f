"""The responses to one call: how they are passed on, what is granted for them, and what ends them."""

import asyncio

import pytest

from opensearch_ml_stream.connectors.errors import StreamTruncated, UpstreamError
from opensearch_ml_stream.extensions.runtimes.service.runtime_calls import RuntimeCalls
from opensearch_ml_stream.extensions.runtimes.service.runtime_response import GRANT_BYTES
from opensearch_ml_stream.plugin.upstream import ResponseFailed
from opensearch_ml_stream.runtimes.frames import CREDIT, INITIAL_CREDIT, Kind, frame
from tests.runtimes.calls.scripted_host import ScriptedHost, Sink, error_payload, opened_stream, read_to_end, request_to


async def test_what_one_read_of_the_socket_brings_goes_to_the_sink_together(
    calls: RuntimeCalls, host: ScriptedHost
) -> None:
    sink = Sink()
    async with opened_stream(calls, host) as (response, begin), opened_stream(calls, host) as (other, of_other):
        pumping = asyncio.ensure_future(response.pump(sink))
        await asyncio.sleep(0)
        begin.worker.write(
            frame(begin.call, Kind.DATA, b"1")
            + frame(of_other.call, Kind.DATA, b"x")
            + frame(begin.call, Kind.DATA, b"2")
            + frame(begin.call, Kind.DATA, b"3")
        )
        assert await sink.next() == b"1\x002\x003\x00"
        assert await other.read() == b"x\x00"
        begin.reply((Kind.DATA, b"4"), (Kind.END, b""))
        assert await pumping
        assert sink.taken == [b"1\x002\x003\x00", b"4\x00"]


async def test_what_has_come_before_the_pump_goes_to_its_sink(calls: RuntimeCalls, host: ScriptedHost) -> None:
    async with opened_stream(calls, host) as (response, begin):
        begin.data(b"1")
        await response._woken()  # it has come, and is kept
        begin.reply((Kind.DATA, b"2"), (Kind.END, b""))
        sink = Sink()
        assert await response.pump(sink)
        assert b"".join(sink.taken) == b"1\x002\x00"


async def test_a_consumer_that_takes_is_granted_as_much_again_in_steps(calls: RuntimeCalls, host: ScriptedHost) -> None:
    sink = Sink()
    async with opened_stream(calls, host) as (response, begin):
        pumping = asyncio.ensure_future(response.pump(sink))
        sent = len(b"{}")
        for size in (GRANT_BYTES - 3, 1, 10_000, GRANT_BYTES - 10_000):
            begin.data(b"x" * size)
            sent += size
            if sent >= GRANT_BYTES:
                assert (await host.next_frame())[:3] == (begin.call, Kind.CREDIT, CREDIT.pack(sent))
                sent = 0
        begin.reply((Kind.END, b""))
        assert await pumping
    assert sum(map(len, sink.taken)) - 4 == 2 * GRANT_BYTES - 2


async def test_a_sink_that_wants_no_more_stops_the_grants_until_it_does(
    calls: RuntimeCalls, host: ScriptedHost
) -> None:
    sink = Sink(enough=10)
    async with opened_stream(calls, host) as (response, begin):
        pumping = asyncio.ensure_future(response.pump(sink))
        begin.data(b"x" * INITIAL_CREDIT)
        assert not await pumping
        begin.data(b"y" * INITIAL_CREDIT)  # more than was granted: it is kept all the same
        async with opened_stream(calls, host) as (_, of_other):
            pass  # its frames follow at once: no credit was sent before them
        assert (await host.next_frame())[:2] == (of_other.call, Kind.CANCEL)
        assert len(sink.taken) == 1
        sink.enough = 2**31
        pumping = asyncio.ensure_future(response.pump(sink))
        granted = [await host.next_frame(), await host.next_frame()]
        assert [one[:2] for one in granted] == [(begin.call, Kind.CREDIT)] * 2
        assert sum(int.from_bytes(one.payload) for one in granted) == 2 * INITIAL_CREDIT + len(b"{}")
        begin.reply((Kind.END, b""))
        assert await pumping


async def test_a_reader_is_granted_what_it_has_read_when_it_reads_on(calls: RuntimeCalls, host: ScriptedHost) -> None:
    async with opened_stream(calls, host) as (response, begin):
        begin.data(b"x" * GRANT_BYTES)
        size = 0
        while size < GRANT_BYTES + 1:
            size += len(await response.read())
        reading = asyncio.ensure_future(response.read())
        assert (await host.next_frame())[:3] == (begin.call, Kind.CREDIT, CREDIT.pack(GRANT_BYTES + 2))
        begin.reply((Kind.END, b""))
        assert await reading == b""


async def test_what_a_model_raises_in_the_middle_follows_what_has_come(calls: RuntimeCalls, host: ScriptedHost) -> None:
    for status, for_caller in ((500, 424), (400, 400)):
        async with opened_stream(calls, host) as (response, begin):
            begin.reply((Kind.DATA, b"1"), (Kind.ERROR, error_payload(status, reason="")))
            assert await response.read() == b"1\0"
            with pytest.raises(ResponseFailed, match=r"^The runtime of model m raised ValueError$") as raised:
                await response.read()
            assert raised.value.status == for_caller
            assert not isinstance(raised.value, StreamTruncated)


async def test_an_error_in_the_first_read_follows_its_responses(calls: RuntimeCalls, host: ScriptedHost) -> None:
    opening = calls.open(request_to())
    entering = asyncio.ensure_future(opening.__aenter__())
    (await host.next_call()).reply((Kind.DATA, b"1"), (Kind.ERROR, error_payload(400)))
    response = await entering
    assert await response.read() == b"1\0"
    with pytest.raises(ResponseFailed):
        await response.read()
    await opening.__aexit__(None, None, None)


async def test_a_pump_ends_with_the_error_that_ends_the_response(calls: RuntimeCalls, host: ScriptedHost) -> None:
    sink = Sink()
    async with opened_stream(calls, host) as (response, begin):
        pumping = asyncio.ensure_future(response.pump(sink))
        await asyncio.sleep(0)
        begin.reply((Kind.DATA, b"1"), (Kind.ERROR, error_payload(500)))
        with pytest.raises(ResponseFailed):
            await pumping
        assert sink.taken == [b"1\0"]
    async with opened_stream(calls, host) as (response, begin):
        pumping = asyncio.ensure_future(response.pump(sink))
        await asyncio.sleep(0)
        await host.die()
        with pytest.raises(UpstreamError, match="in the middle"):
            await pumping


async def test_a_stream_without_any_response_has_an_empty_body(calls: RuntimeCalls, host: ScriptedHost) -> None:
    opening = calls.open(request_to())
    entering = asyncio.ensure_future(opening.__aenter__())
    (await host.next_call()).reply((Kind.END, b""))
    assert await read_to_end(await entering) == b""
    await opening.__aexit__(None, None, None)


async def test_a_response_that_is_failed_is_cancelled_and_raises_that_from_then_on(
    calls: RuntimeCalls, host: ScriptedHost
) -> None:
    async with opened_stream(calls, host) as (response, begin):
        reading = asyncio.ensure_future(response.read())
        await asyncio.sleep(0)
        response.fail(UpstreamError("enough"))
        with pytest.raises(UpstreamError, match="enough"):
            await reading
        with pytest.raises(UpstreamError, match="enough"):
            await response.pump(Sink())
        assert (await host.next_frame())[:2] == (begin.call, Kind.CANCEL)
    async with opened_stream(calls, host) as (response, begin):
        begin.reply((Kind.END, b""))
        assert await response.read() == b""
        response.fail(UpstreamError("too late"))
        assert await response.read() == b""
