"""A stream that takes further requests while its responses come: one whenever its model waits for one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest
from opensearch_ml_stream.extensions.runtimes.service.runtime_calls import RuntimeCalls
from opensearch_ml_stream.runtimes.frames import MAX_PAYLOAD, Kind
from tests.runtimes.calls.scripted_host import (
    READ,
    REQUEST,
    Client,
    ScriptedHost,
    opened_stream,
    read_to_end,
    request_to,
)
from tests.runtimes.calls.test_real_process import running_model
from tests.runtimes.host.running_host import text_request, texts_of

JOINING = """
class Model(MLModel):
    async def predict_stream(self, requests):
        said = []
        async for request in requests:
            said += texts_of(request)
            if said[-1] == "echo":
                yield text_response(*said)
        yield text_response(*said)
"""


@asynccontextmanager
async def opening(calls: RuntimeCalls, client: Client) -> AsyncIterator["asyncio.Task[bytes]"]:
    """A call that is made and read to its end in a task."""

    async def called() -> bytes:
        async with calls.open(request_to(), client.next) as response:
            return await read_to_end(response)

    task = asyncio.create_task(called())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_a_request_is_fetched_when_the_model_waits_for_it_and_not_before(
    calls: RuntimeCalls, host: ScriptedHost
) -> None:
    client = Client()
    for request in (b"1", b"2", None):
        client.requests.put_nowait(request)
    async with opening(calls, client) as reading:
        begin = await host.next_frame()
        assert begin[:3] == (1, Kind.STREAM, REQUEST)
        async with opened_stream(calls, host):  # in which anything else of the first call would have come
            assert client.asked == 0
        assert (await host.next_frame()).kind == Kind.CANCEL
        for expected in ((Kind.INPUT, b"1"), (Kind.INPUT, b"2"), (Kind.INPUT_END, b"")):
            begin.reply((Kind.DATA, b"x"), READ)
            frame = await host.next_frame()
            assert (frame.kind, frame.payload) == expected
        begin.reply((Kind.END, b""))
        assert await reading == b"x\0x\0x\0"
        assert client.asked == 3


@pytest.mark.parametrize("begun", [False, True])
async def test_an_error_in_place_of_a_request_ends_the_call_and_the_models_work(
    calls: RuntimeCalls, host: ScriptedHost, begun: bool
) -> None:
    client = Client()
    client.requests.put_nowait(Forbidden("not any more"))
    async with opening(calls, client) as reading:
        begin = await host.next_frame()
        begin.reply(*([(Kind.DATA, b"x")] if begun else []), READ)
        with pytest.raises(Forbidden, match="not any more"):
            await reading
        assert (await host.next_frame())[:2] == (begin.call, Kind.CANCEL)


async def test_leaving_ends_the_wait_for_the_client(calls: RuntimeCalls, host: ScriptedHost) -> None:
    client = Client()
    async with opening(calls, client) as reading:
        begin = await host.next_frame()
        begin.reply(READ)
        await client.waits.wait()
        reading.cancel()
        await asyncio.wait([reading])
        assert client.left.is_set()
        assert (await host.next_frame()).kind == Kind.CANCEL


async def test_a_model_that_ends_before_its_client_ends_the_stream(calls: RuntimeCalls, host: ScriptedHost) -> None:
    client = Client()
    async with opening(calls, client) as reading:
        begin = await host.next_frame()
        begin.reply((Kind.DATA, b"x"), READ, (Kind.END, b""))
        assert await reading == b"x\0"


async def test_a_request_that_is_too_large_is_refused(calls: RuntimeCalls, host: ScriptedHost) -> None:
    client = Client()
    client.requests.put_nowait(b"x" * (MAX_PAYLOAD + 1))
    async with opening(calls, client) as reading:
        (await host.next_frame()).reply(READ)
        with pytest.raises(InvalidRequest):
            await reading


async def test_a_read_of_a_stream_with_one_request_is_dropped(calls: RuntimeCalls, host: ScriptedHost) -> None:
    async with opened_stream(calls, host) as (response, begin):
        begin.reply(READ, (Kind.DATA, b"2"), READ, (Kind.END, b""), READ)
        assert await read_to_end(response) == b"2\0"


async def test_a_real_model_joins_requests_and_responds_before_the_last(calls: RuntimeCalls, tmp_path: Path) -> None:
    client = Client()
    client.requests.put_nowait(text_request("echo"))
    async with (
        running_model(tmp_path, JOINING),
        calls.open(request_to(body=text_request("a")), client.next) as response,
    ):
        assert texts_of((await response.read()).rstrip(b"\0")) == ["a", "echo"]
        client.requests.put_nowait(text_request("b"))
        client.requests.put_nowait(None)
        assert texts_of((await read_to_end(response)).rstrip(b"\0")) == ["a", "echo", "b"]
