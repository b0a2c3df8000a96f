"""Recorded streams of providers, cut off in the head, in a chunk's size, in a character.

After each few bytes: each single one is tried without sockets, of heads and chunks in plugin/tests/upstream/http1, of
what is in them in connectors/tests/providers.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

import httpx
import pytest
from integration_tests.faults.providers.faulty_calls import (
    Outcome,
    memory_mib,
    open_sockets,
    open_streams,
    outcome_of,
)
from integration_tests.interop.provider_dialects import DIALECTS
from integration_tests.support.conditions import eventually_async
from integration_tests.support.connector_bodies import blueprint_connector
from integration_tests.support.fake_provider import Act, FakeProvider, Request, Script, chunked_stream
from integration_tests.support.sidecars import Sidecar

CALLS_AT_ONCE = 8
PIECE_BYTES = 61
STEP_BYTES = 7


class CutProvider:
    """Plays a dialect's stream up to the byte that the prompt names, then ends the connection as `end` says."""

    def __init__(self, name: str, content_type: str, end: Act) -> None:
        streamed = DIALECTS[name].streamed
        assert streamed is not None
        self.recorded = streamed.recorded
        data = self.recorded.data
        pieces = [data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES)]
        script = chunked_stream(pieces, content_type=content_type)
        self.response = b"".join(step for step in script if isinstance(step, bytes))
        self._end = end

    def script(self, request: Request) -> Script:
        cut = re.search(rb"cut after (\d+) bytes", request.body)
        assert cut is not None
        return [self.response[: int(cut[1])], self._end]


@pytest.mark.parametrize(
    ("name", "content_type", "end"),
    [
        ("vllm-chat", "text/event-stream", Act.CLOSE),
        ("ollama-chat", "application/x-ndjson", Act.CLOSE),
        ("ollama-chat", "application/x-ndjson", Act.RESET),
        ("bedrock-invoke-mistral", "application/vnd.amazon.eventstream", Act.CLOSE),
    ],
)
async def test_a_stream_may_be_cut_anywhere(sidecar: Sidecar, name: str, content_type: str, end: Act) -> None:
    cut = CutProvider(name, content_type, end)
    async with (
        FakeProvider(cut.script) as provider,
        httpx.AsyncClient(base_url=sidecar.url, timeout=20, verify=False) as client,
    ):
        model_id = await asyncio.to_thread(sidecar.create_model, blueprint_connector(name, provider.url))
        sockets, memory = open_sockets(sidecar), memory_mib(sidecar)
        outcomes = await outcomes_of_cuts(client, model_id, len(cut.response))
        check(outcomes, cut, f"127.0.0.1:{provider.port}", end)
        assert len(provider.requests) == len(outcomes)  # none was sent twice
        await eventually_async(lambda: provider.open_connections == 0)
        assert open_streams(sidecar) == 0
    await eventually_async(lambda: open_sockets(sidecar) <= sockets)
    assert memory_mib(sidecar) < memory + 32


async def outcomes_of_cuts(client: httpx.AsyncClient, model_id: str, size: int) -> Mapping[int, Outcome]:
    """What comes of the stream cut after so many bytes, the last time after all."""
    outcomes = dict.fromkeys([*range(0, size, STEP_BYTES), size], Outcome(0, "", ""))
    path = f"/_plugins/_ml/models/{model_id}/_predict/stream"

    async def call(numbers: Iterator[int]) -> None:
        for number in numbers:
            body = {"parameters": {"inputs": f"cut after {number} bytes"}}
            outcomes[number] = outcome_of(await client.post(path, json=body))

    numbers = iter(outcomes)
    await asyncio.gather(*[call(numbers) for _ in range(CALLS_AT_ONCE)])
    return outcomes


def check(outcomes: Mapping[int, Outcome], cut: CutProvider, authority: str, end: Act) -> None:
    whole = cut.recorded.text
    last = outcomes[len(cut.response)]
    assert last.status == 200
    for outcome in outcomes.values():
        assert whole.startswith(outcome.text)
        assert (outcome.reason == "") <= (outcome.text == whole), "a good end without all of the text"
        assert outcome.reason == "" or authority in outcome.reason
    if end is Act.CLOSE:  # a reset may overtake the bytes before it
        assert last == Outcome(200, whole, "")
        assert all(len(shorter.text) <= len(longer.text) for shorter, longer in pairwise(outcomes.values()))
        head = cut.response.index(b"\r\n\r\n") + 4
        assert {outcome.status for size, outcome in outcomes.items() if size < head} == {424}
