"""Requests that follow one another on a connection before the first is answered (RFC 9112, section 9.3.2)."""

import asyncio
import re
from collections.abc import Iterator

import pytest
from integration_tests.support import connector_bodies as connectors
from integration_tests.support.fake_provider import FakeProvider, Request, Script, json_answer, openai_stream
from integration_tests.support.raw_requests import connected, predict_request
from integration_tests.support.sidecars import Sidecar, running_sidecar

LARGE = 30_000_000


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    settings = {"opensearch_ml_stream.first_event_wait_seconds": "0.2"}
    with running_sidecar(tmp_path_factory.mktemp("sidecar"), settings=settings) as running:
        yield running


async def answers(sidecar: Sidecar, data: bytes, pause: float = 0) -> bytes:
    """All that comes back until the server closes; reading begins after `pause` seconds."""
    reader, writer = await connected(sidecar)
    try:
        writer.write(data)
        await asyncio.sleep(pause)
        return await asyncio.wait_for(reader.read(), 20)
    finally:
        writer.transport.abort()


async def test_streams_on_one_connection_come_whole_and_in_turn(sidecar: Sidecar) -> None:
    def script(asked: Request) -> Script:
        name = asked.json()["messages"][0]["content"]
        return openai_stream([f"{name}{number} " for number in range(20)], pause=0.01)

    async with FakeProvider(script) as provider:
        model_id = await asyncio.to_thread(sidecar.create_model, connectors.openai(provider.url))
        pipelined = (
            predict_request(model_id, "a") + predict_request(model_id, "b") + predict_request(model_id, "c", close=True)
        )
        got = await answers(sidecar, pipelined)
    assert got.count(b"HTTP/1.1 200 OK") == 3
    words = re.findall(rb'"response":"([abc]\d+) "', got)
    assert words == [b"%c%d" % (name, number) for name in b"abc" for number in range(20)]


async def test_a_stream_behind_an_answer_that_is_not_read_yet_begins_with_its_head(sidecar: Sidecar) -> None:
    def script(asked: Request) -> Script:
        if asked.json().get("stream"):
            return [0.5, *openai_stream(["Hello", " you"], pause=0.05)]
        return json_answer({"choices": [{"message": {"content": "z" * LARGE}}]})

    async with FakeProvider(script) as provider:
        model_id = await asyncio.to_thread(sidecar.create_model, connectors.openai(provider.url))
        pipelined = predict_request(model_id, "a", "_predict") + predict_request(model_id, "b", close=True)
        got = await answers(sidecar, pipelined, pause=1.5)
    whole, stream = got[: LARGE // 2], got[LARGE:]
    assert whole.startswith(b"HTTP/1.1 200 OK")
    head, _, body = stream.partition(b"\r\n\r\n")
    assert head.rpartition(b"}")[2].startswith(b"HTTP/1.1 200 OK")
    assert b'"Hello"' in body
    assert b'"is_last":true' in body
