"""What a stream's client gets when the provider refuses, fails, breaks off or is slow to begin."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from integration_tests.predict.streams.stream_calls import (
    QUESTION,
    data_as_map,
    lines,
    openai_model,
    piecewise,
    stream_path,
    streamed,
)
from integration_tests.support.conditions import eventually_async
from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    SSE_HEAD,
    Act,
    FakeProvider,
    Gate,
    Step,
    chunk,
    json_response,
    openai_delta,
    sse_event,
)
from integration_tests.support.sidecars import Sidecar

from opensearch_ml_stream.plugin.predictions.provider_stream import FINISH_SECONDS


@pytest.mark.parametrize(("status", "expected"), [(401, 424), (429, 429)])
async def test_a_provider_that_refuses_gives_a_status_and_its_own_words(
    client: httpx.AsyncClient, sidecar: Sidecar, status: int, expected: int
) -> None:
    script = json_response({"error": {"message": "no sk-secret-1234567890 today"}}, status, retry_after="7")
    response = await streamed(client, sidecar, script)
    assert response.status_code == expected
    error = response.json()["error"]
    assert error["provider_status"] == status
    assert "today" in error["reason"]
    assert "sk-secret" not in response.text
    assert response.headers.get("retry-after") == "7"


@pytest.mark.parametrize(
    ("end", "kind", "query"),
    [
        ([Act.RESET], "stream_truncated_exception", ""),
        ([chunk(sse_event({"error": {"message": 'say "no"\n'}}))], "status_exception", "?format=sse"),
    ],
)
async def test_a_response_that_breaks_off_ends_with_one_error_object(
    client: httpx.AsyncClient, sidecar: Sidecar, end: list[Any], kind: str, query: str
) -> None:
    gate = Gate()
    async with FakeProvider([SSE_HEAD, chunk(openai_delta("Hel")), gate, *end]) as provider:
        text = await piecewise(client, await openai_model(sidecar, provider.url), "Hel", gate, query)
    texts = [line.removeprefix("data: ") for line in text.splitlines() if line]
    assert len(texts) == 2
    error = json.loads(texts[1])
    assert error["status"] == 424
    assert (error["error"]["type"] if not query else error["type"]) == kind
    assert isinstance(error["error"], str) == bool(query)


async def test_a_provider_that_closes_before_its_first_event_is_a_424(
    client: httpx.AsyncClient, sidecar: Sidecar
) -> None:
    response = await streamed(client, sidecar, [SSE_HEAD, LAST_CHUNK])
    assert response.status_code == 424
    assert response.json()["error"]["type"] == "stream_truncated_exception"


async def test_a_provider_that_does_not_stream_is_named(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    response = await streamed(client, sidecar, json_response({"choices": []}))
    assert response.status_code == 424
    assert "application/json" in response.json()["error"]["reason"]


async def test_a_slow_beginning_is_bridged_by_heartbeats(hasty_sidecar: Sidecar) -> None:
    good = [chunk(openai_delta("Hi")), chunk(b"data: [DONE]\n\n"), LAST_CHUNK]
    async with httpx.AsyncClient(base_url=hasty_sidecar.url, timeout=60) as client:
        for query, beats in (("", "\n\n"), ("?format=sse", ": ping\n: ping\n")):
            gate = Gate()
            async with FakeProvider([SSE_HEAD, gate, *good]) as provider:
                text = await piecewise(client, await openai_model(hasty_sidecar, provider.url), beats, gate, query)
            assert text.startswith(beats)
            assert text.count('"dataAsMap"') == 2


async def test_an_error_after_a_slow_beginning_is_the_terminal_object(hasty_sidecar: Sidecar) -> None:
    gate = Gate()
    async with (
        httpx.AsyncClient(base_url=hasty_sidecar.url, timeout=60) as client,
        FakeProvider([gate, *json_response({"error": "busy"}, 503)]) as provider,
    ):
        (error,) = lines(await piecewise(client, await openai_model(hasty_sidecar, provider.url), "\n", gate))
    assert error["status"] == 424


_FINISHED = [
    SSE_HEAD,
    chunk(openai_delta("42")),
    chunk(sse_event({"choices": [{"index": 0, "finish_reason": "stop"}]})),
]
_PINGS: list[Step] = [step for _ in range(200) for step in (chunk(b": ping\n\n"), 0.05)]


@pytest.mark.slow
@pytest.mark.parametrize("after", [[Act.WAIT], _PINGS], ids=["silence", "pings"])
async def test_a_provider_that_does_not_end_after_its_finish_reason_ends_well_within_three_seconds(
    client: httpx.AsyncClient, sidecar: Sidecar, after: list[Any]
) -> None:
    """Its connection is closed then, so that the provider notices, and is not used again."""
    async with FakeProvider([*_FINISHED, *after]) as provider:
        model_id = await openai_model(sidecar, provider.url)
        started = asyncio.get_running_loop().time()
        response = await client.post(stream_path(model_id), json=QUESTION)
        waited = asyncio.get_running_loop().time() - started
        first, last = map(data_as_map, lines(response.text))
        assert (first["response"], last["is_last"], last["finish_reason"]) == ("42", True, "stop")
        assert FINISH_SECONDS - 0.1 < waited < FINISH_SECONDS + 2
        await asyncio.wait_for(provider.disconnected.wait(), 5)
        await eventually_async(lambda: provider.open_connections == 0)
