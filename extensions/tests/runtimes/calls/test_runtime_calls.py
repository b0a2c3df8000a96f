"""Calls of a scripted process: what is sent, and what comes of it."""

import asyncio
import socket
from contextlib import nullcontext
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.extensions.runtimes.service.runtime_calls import RuntimeCalls
from opensearch_ml_stream.extensions.runtimes.service.runtime_models import RuntimeModels
from opensearch_ml_stream.extensions.v2.face import own_errors
from opensearch_ml_stream.runtimes.frames import MAX_PAYLOAD, FrameParser, Kind, frame
from tests.runtimes.calls.scripted_host import (
    REQUEST,
    ScriptedHost,
    error_payload,
    opened_stream,
    predict,
    read_to_end,
    request_to,
    write_models,
)


async def test_a_prediction_is_one_frame_and_the_body_is_its_response(calls: RuntimeCalls, host: ScriptedHost) -> None:
    predicting = asyncio.ensure_future(predict(calls))
    begin = await host.next_frame()
    assert begin[:3] == (1, Kind.PREDICT, REQUEST)
    begin.reply((Kind.DATA, b'{"outputs":[]}'), (Kind.END, b""))
    assert await predicting == b'{"outputs":[]}'


async def test_a_streams_responses_are_separated(calls: RuntimeCalls, host: ScriptedHost) -> None:
    async with opened_stream(calls, host, b"1") as (response, begin):
        assert (begin.kind, begin.payload) == (Kind.STREAM, REQUEST)
        assert (response.status, response.headers) == (200, {"content-type": "application/octet-stream"})
        begin.reply((Kind.DATA, b"2"), (Kind.DATA, b"3"), (Kind.END, b""))
        assert await read_to_end(response) == b"2\x003\x00"
        assert await response.read() == b""


async def test_calls_of_one_worker_share_a_connection_and_get_what_is_theirs(
    calls: RuntimeCalls, host: ScriptedHost
) -> None:
    async with opened_stream(calls, host) as (one, of_one), opened_stream(calls, host) as (two, of_two):
        assert len(host.workers) == 1
        of_one.worker.write(
            frame(of_one.call, Kind.DATA, b"a")
            + frame(of_two.call, Kind.DATA, b"x")
            + frame(of_one.call, Kind.DATA, b"b")
            + frame(of_two.call, Kind.END)
            + frame(of_one.call, Kind.END)
        )
        assert (await read_to_end(one), await read_to_end(two)) == (b"a\x00b\x00", b"x\x00")


async def test_leaving_early_cancels_and_what_still_comes_is_dropped(calls: RuntimeCalls, host: ScriptedHost) -> None:
    async with opened_stream(calls, host) as (_, begin):
        pass
    assert (await host.next_frame())[:3] == (begin.call, Kind.CANCEL, b"")
    begin.reply((Kind.DATA, b"late"), (Kind.END, b""))
    async with opened_stream(calls, host) as (_, second):
        assert (second.call, len(host.workers)) == (begin.call + 1, 1)


async def test_a_call_that_has_ended_is_not_cancelled(calls: RuntimeCalls, host: ScriptedHost) -> None:
    async with opened_stream(calls, host) as (response, begin):
        begin.reply((Kind.END, b""))
        assert await response.read() == b""
    async with opened_stream(calls, host):
        pass  # its first frame is the next one


async def test_a_call_whose_client_leaves_before_the_first_response_is_cancelled(
    calls: RuntimeCalls, host: ScriptedHost
) -> None:
    predicting = asyncio.ensure_future(predict(calls))
    begin = await host.next_call()
    predicting.cancel()
    assert (await host.next_frame())[:3] == (begin.call, Kind.CANCEL, b"")
    with pytest.raises(asyncio.CancelledError):
        await predicting


@pytest.mark.parametrize(
    ("status", "is_own", "for_caller"),
    [
        (400, True, 400),
        (422, True, 400),
        (404, True, 424),
        (418, True, 424),
        (429, True, 429),
        (503, True, 424),
        (500, False, 424),
    ],
)
async def test_what_a_model_raises_before_its_first_response_has_its_status_and_words(
    calls: RuntimeCalls, host: ScriptedHost, status: int, is_own: bool, for_caller: int
) -> None:
    """And, where callers get what the model says, the status that it says, and no other words."""
    words = "The runtime of model m raised ValueError: too long"
    own = (status, "too long") if is_own else (for_caller, words)
    for is_told, told in ((nullcontext, (for_caller, words)), (own_errors, own)):
        predicting = asyncio.ensure_future(predict(calls))
        (await host.next_call()).reply((Kind.ERROR, error_payload(status, is_own=is_own)))
        with (
            pytest.raises(UpstreamError) as raised,
            is_told(),
        ):
            await predicting
        assert (raised.value.status, raised.value.reason, raised.value.provider_status) == (*told, status)


async def test_an_error_that_cannot_be_read_is_one_of_the_runtime(calls: RuntimeCalls, host: ScriptedHost) -> None:
    for payload in (b"", b"\xff", b"[]", b'{"status": true}', b'{"status": 200}'):
        predicting = asyncio.ensure_future(predict(calls))
        (await host.next_call()).reply((Kind.ERROR, payload))
        with pytest.raises(UpstreamError, match=r"^The runtime of model m raised an error") as raised:
            await predicting
        assert raised.value.status == 424


async def test_a_process_that_dies_fails_its_calls_and_the_next_one_goes_to_its_successor(
    calls: RuntimeCalls, host: ScriptedHost, tmp_path: Path
) -> None:
    predicting = asyncio.ensure_future(predict(calls))
    await host.next_call()
    async with opened_stream(calls, host) as (response, begin):
        begin.data(b"last")
        assert await response.read() == b"last\0"
        await host.die()
        with pytest.raises(UpstreamError, match="model m ended before it responded"):
            await predicting
        with pytest.raises(UpstreamError, match="model m ended in the middle of its response"):
            await response.read()
    with pytest.raises(UpstreamError, match="runtime model m cannot be reached") as raised:
        await predict(calls)
    assert raised.value.retry_after == "1"
    async with ScriptedHost(tmp_path / "1.1.sock") as successor:
        write_models(tmp_path, m=[successor])
        async with opened_stream(calls, successor) as (_, begin):
            assert begin.call == 1


@pytest.mark.parametrize(
    "malformed",
    [
        frame(1, 99),
        frame(1, Kind.CREDIT, b"\0\0\0\1"),
        frame(7, Kind.DATA, b"{}"),
        frame(0, Kind.END),
        (MAX_PAYLOAD + 1).to_bytes(4) + b"\0\0\0\1\x10",
    ],
)
async def test_what_is_no_frame_fails_all_calls_and_closes_the_connection(
    calls: RuntimeCalls, host: ScriptedHost, malformed: bytes
) -> None:
    predicting = asyncio.ensure_future(predict(calls))
    begin = await host.next_call()
    begin.worker.write(malformed)
    with pytest.raises(UpstreamError, match="runtime model m sent a malformed frame"):
        await predicting
    async with opened_stream(calls, host) as (_, begin):
        assert (begin.call, len(host.workers)) == (1, 2)


async def test_what_came_before_the_bytes_that_are_no_frame_is_passed_on(
    calls: RuntimeCalls, host: ScriptedHost
) -> None:
    async with opened_stream(calls, host) as (response, begin):
        begin.worker.write(frame(begin.call, Kind.DATA, b"good") + frame(begin.call, 99))
        assert await response.read() == b"good\0"
        with pytest.raises(UpstreamError, match="malformed frame"):
            await response.read()


async def test_a_host_that_is_slow_to_accept_gets_the_calls_later(calls: RuntimeCalls, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "slow.sock"))
        listener.listen(8)
        write_models(tmp_path, m=[ScriptedHost(tmp_path / "slow.sock")])
        predicting = asyncio.ensure_future(predict(calls))
        await asyncio.sleep(0)
        (process,) = calls._processes.values()
        await process.connection()
        listener.setblocking(False)
        accepted, _ = await asyncio.get_running_loop().sock_accept(listener)
        accepted.setblocking(True)
        with accepted:
            sent = await asyncio.to_thread(accepted.recv, 65_536)
            assert list(FrameParser().feed(sent)) == [(1, Kind.PREDICT, REQUEST)]
            accepted.sendall(frame(1, Kind.DATA, b"{}") + frame(1, Kind.END))
            assert await predicting == b"{}"


async def test_a_request_that_fits_no_frame_is_refused(calls: RuntimeCalls, host: ScriptedHost) -> None:
    with pytest.raises(InvalidRequest, match="takes 67108864 at most"):
        async with calls.open(request_to(body=bytes(MAX_PAYLOAD + 1))):
            pass
    async with opened_stream(calls, host):
        pass  # the first frame is this one's


async def test_a_connection_whose_numbers_are_used_up_ends_with_its_last_call(
    calls: RuntimeCalls, host: ScriptedHost
) -> None:
    async with opened_stream(calls, host):
        (process,) = calls._processes.values()
        connection = await process.connection()
        connection._last_number = 2**32 - 2
        async with opened_stream(calls, host) as (_, begin):
            assert begin.call == 2**32 - 1
            async with opened_stream(calls, host) as (_, other):
                assert (other.call, len(host.workers)) == (1, 2)
            assert (await host.next_frame()).kind == Kind.CANCEL
        assert (await host.next_frame()).kind == Kind.CANCEL
        assert not host.workers[0].is_closing()
    await asyncio.wait_for(host.workers[0].wait_closed(), 10)
    assert not host.workers[1].is_closing()


async def test_leaving_closes_the_connections(tmp_path: Path, host: ScriptedHost) -> None:
    async with RuntimeCalls(RuntimeModels(tmp_path)) as calls, opened_stream(calls, host):
        pass
    await asyncio.wait_for(host.workers[0].wait_closed(), 10)
