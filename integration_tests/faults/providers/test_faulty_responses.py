"""Responses that no provider should send: what the client gets of them, and whether the next one is as good as ever.

One of each kind: what is refused of heads and chunks is a list in plugin/tests/upstream/http1.
"""

import asyncio
import itertools
import socket
from dataclasses import dataclass

import httpx
import pytest
from integration_tests.faults.providers.faulty_calls import Outcome, open_sockets, open_streams, outcome_of
from integration_tests.support.conditions import eventually_async
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    SSE_HEAD,
    Act,
    FakeProvider,
    Request,
    Script,
    Step,
    chunk,
    chunked_stream,
    head,
    json_response,
    openai_delta,
    openai_stream,
)
from integration_tests.support.sidecars import Sidecar

QUESTION = {"parameters": {"inputs": "x"}}
HELLO = chunk(openai_delta("Hel"))
DONE = b"data: [DONE]\n\n"
TWO_EVENTS = openai_delta("Hel") + openai_delta("lo")
READ_TIMEOUT_SECONDS = 1
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Fault:
    """A script, the words of its error, and what reached the client of the stream before it."""

    script: Script
    words: str
    text: str = ""
    status: int = 424


def with_length(length: int, body: bytes, *more: Step) -> Script:
    return [head(content_type="text/event-stream", content_length=str(length)) + body, *more]


def with_head(*lines: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", "Content-Type: text/event-stream", *lines, "\r\n"]).encode()


NOT_HTTP = "did not respond with valid HTTP/1.1"
MIDDLE = "closed the connection in the middle of its response"
INCOMPLETE = "the response is incomplete"
TOO_LARGE = "head is larger than 65536 bytes"
CHUNKS = "its chunks cannot be read"
SILENT = "sent nothing for 1 s. Raise read_timeout"

FAULTS: dict[str, Fault] = {
    "closes at once": Fault([Act.CLOSE], "closed the connection before it responded"),
    "drops in the middle of an event": Fault([SSE_HEAD, HELLO, chunk(b'data: {"choi'), Act.CLOSE], MIDDLE, "Hel", 200),
    "ends in the middle of an event": Fault(
        [SSE_HEAD, HELLO, chunk(b'data: {"choi'), LAST_CHUNK], INCOMPLETE, "Hel", 200
    ),
    "sends no head": Fault([Act.WAIT], SILENT),
    "falls silent": Fault([SSE_HEAD, HELLO, Act.WAIT], SILENT, "Hel", 200),
    "speaks another protocol": Fault([b"SSH-2.0-OpenSSH_9.6\r\n", Act.WAIT], NOT_HTTP),
    "sends a head without end": Fault([b"HTTP/1.1 200 OK\r\n", *[b"X-A: " + b"a" * 8000 + b"\r\n"] * 20], TOO_LARGE),
    "sends a status of its own": Fault([head(999, content_length="0")], "status 999"),
    "is longer than it says": Fault(with_length(len(TWO_EVENTS), TWO_EVENTS + DONE * 9), INCOMPLETE, "Hello", 200),
    "is shorter than it says": Fault(with_length(10_000, TWO_EVENTS, Act.CLOSE), MIDDLE, "Hello", 200),
    "says two lengths": Fault([with_head("Content-Length: 5", "Content-Length: 6"), Act.CLOSE], NOT_HTTP),
    "sends a chunk's size that is no number": Fault([SSE_HEAD + HELLO + b"zz\r\n", Act.WAIT], CHUNKS, "Hel", 200),
    "sends an event without end": Fault(
        [SSE_HEAD, HELLO, *[chunk(b"data: " + b"a" * MIB)], *[chunk(b"a" * MIB)] * 40], "event of more than", "Hel", 200
    ),
    "sends a page": Fault(chunked_stream([b"<html>busy</html>"], content_type="text/html"), "text/html"),
    "sends nothing": Fault(chunked_stream([]), INCOMPLETE),
}  # fmt: skip


class OnceFaulty:
    """Plays the fault for the first request, and what is good for those that follow."""

    def __init__(self, fault: Script, good: Script) -> None:
        self._scripts = itertools.chain([fault], itertools.repeat(good))

    def __call__(self, request: Request) -> Script:
        return next(self._scripts)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_a_fault_ends_one_stream_and_no_other(sidecar: Sidecar, fault: Fault) -> None:
    assert open_streams(sidecar) == 0
    sockets = open_sockets(sidecar)
    async with (
        FakeProvider(OnceFaulty(fault.script, openai_stream(["go", "od"]))) as provider,
        httpx.AsyncClient(base_url=sidecar.url, timeout=20, verify=False) as client,
    ):
        path = f"/_plugins/_ml/models/{await new_model(sidecar, provider.url)}/_predict/stream"
        outcome = outcome_of(await client.post(path, json=QUESTION))
        assert (outcome.status, outcome.text) == (fault.status, fault.text)
        assert fault.words in outcome.reason
        await eventually_async(lambda: provider.open_connections <= 1)
        assert outcome_of(await client.post(path, json=QUESTION)) == Outcome(200, "good", "")
        assert len(provider.requests) == 2
    assert open_streams(sidecar) == 0
    await eventually_async(lambda: open_sockets(sidecar) <= sockets)


@pytest.mark.parametrize(
    "name",
    [
        "closes at once", "falls silent", "is shorter than it says", "sends a chunk's size that is no number",
        "sends a status of its own", "sends nothing",
    ],
)  # fmt: skip
async def test_a_fault_ends_one_whole_prediction_and_no_other(sidecar: Sidecar, name: str) -> None:
    async with (
        FakeProvider(OnceFaulty(FAULTS[name].script, json_response({"a": 1}))) as provider,
        httpx.AsyncClient(base_url=sidecar.url, timeout=20, verify=False) as client,
    ):
        path = f"/_plugins/_ml/models/{await new_model(sidecar, provider.url)}/_predict"
        response = await client.post(path, json=QUESTION)
        assert response.status_code == 424
        words = "empty response body" if name == "sends nothing" else FAULTS[name].words
        assert words in response.json()["error"]["reason"]
        assert (await client.post(path, json=QUESTION)).status_code == 200
        assert len(provider.requests) == 2


async def test_a_port_where_nobody_listens_is_named(sidecar: Sidecar) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        authority = f"127.0.0.1:{unused.getsockname()[1]}"
        path = f"/_plugins/_ml/models/{await new_model(sidecar, f'http://{authority}')}/_predict/stream"
        async with httpx.AsyncClient(base_url=sidecar.url, timeout=20, verify=False) as client:
            outcome = outcome_of(await client.post(path, json=QUESTION))
    assert outcome.status == 424
    assert f"Connection refused: {authority}. Check that the provider runs" in outcome.reason


async def new_model(sidecar: Sidecar, url: str) -> str:
    connector = openai(url, client_config={"read_timeout": READ_TIMEOUT_SECONDS})
    return await asyncio.to_thread(sidecar.create_model, connector)
