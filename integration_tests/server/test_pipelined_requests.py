"""Requests that follow one another on a connection before the response to the first (RFC 9112, section 9.3.2)."""

import asyncio
import re
from collections.abc import Callable

from integration_tests.support import connector_bodies
from integration_tests.support.conditions import PATIENCE_SECONDS, eventually_async
from integration_tests.support.fake_provider import FakeProvider, Request, Script, json_response, openai_stream
from integration_tests.support.raw_requests import connected, predict_request
from integration_tests.support.sidecars import Sidecar

LARGE = 30_000_000


async def exchange(sidecar: Sidecar, requests: bytes, read_when: Callable[[], bool] = lambda: True) -> bytes:
    """All bytes that come back until the server closes; reading begins when `read_when` is true."""
    reader, writer = await connected(sidecar)
    try:
        writer.write(requests)
        await eventually_async(read_when)
        return await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)
    finally:
        writer.transport.abort()


async def test_streams_on_one_connection_come_whole_and_in_turn(two_workers: Sidecar) -> None:
    def script(request: Request) -> Script:
        name = request.json()["messages"][0]["content"]
        return openai_stream([f"{name}{number} " for number in range(20)])

    async with FakeProvider(script) as provider:
        model_id = await asyncio.to_thread(two_workers.create_model, connector_bodies.openai(provider.url))
        pipelined = (
            predict_request(model_id, "a") + predict_request(model_id, "b") + predict_request(model_id, "c", close=True)
        )
        received = await exchange(two_workers, pipelined)
    assert received.count(b"HTTP/1.1 200 OK") == 3
    texts = re.findall(rb'"response":"([abc]\d+) "', received)
    assert texts == [b"%c%d" % (name, number) for name in b"abc" for number in range(20)]


async def test_a_stream_behind_a_response_that_is_not_read_yet_begins_with_its_head(two_workers: Sidecar) -> None:
    def script(request: Request) -> Script:
        if request.json().get("stream"):
            return [0.7, *openai_stream(["Hello", " you"])]  # later than the wait for a first event
        return json_response({"choices": [{"message": {"content": "z" * LARGE}}]})

    async with FakeProvider(script) as provider:
        model_id = await asyncio.to_thread(two_workers.create_model, connector_bodies.openai(provider.url))
        pipelined = predict_request(model_id, "a", "_predict") + predict_request(model_id, "b", close=True)
        received = await exchange(two_workers, pipelined, read_when=lambda: provider.played == 2)
    whole, stream = received[: LARGE // 2], received[LARGE:]
    assert whole.startswith(b"HTTP/1.1 200 OK")
    head, _, body = stream.partition(b"\r\n\r\n")
    assert head.rpartition(b"}")[2].startswith(b"HTTP/1.1 200 OK")
    assert b'"Hello"' in body
    assert b'"is_last":true' in body
