"""`/generate-stream` of a real server of two workers: what clients of a vLLM tutorial get, and what is paid for."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx_sse
import pytest
from integration_tests.predict.generate_stream.tutorial import PATH, SETTING, WORDS, Tutorial
from integration_tests.support.conditions import eventually, eventually_async
from integration_tests.support.connector_bodies import openai

TEXTS = ["".join(WORDS[:count]) for count in range(1, len(WORDS) + 1)]


def request_of(method: str, prompt: str) -> dict[str, Any]:
    """The arguments of a request for httpx."""
    place = {"json": {"prompt": prompt}} if method == "POST" else {"params": {"prompt": prompt}}
    return {"method": method, "url": PATH, **place}


@asynccontextmanager
async def client_of(tutorial: Tutorial) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=tutorial.sidecar.url, timeout=60) as client:
        yield client


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_the_text_grows_from_event_to_event_until_done(tutorial: Tutorial, method: str) -> None:
    async with (
        client_of(tutorial) as client,
        httpx_sse.aconnect_sse(client, **request_of(method, "words")) as source,
    ):
        data = [event.data async for event in source.aiter_sse()]
    assert data[-1] == "[DONE]"
    texts = [json.loads(one)["text"] for one in data[:-1]]
    assert texts[-1] == TEXTS[-1]
    assert texts == [text for text in TEXTS if text in texts]  # a busy server may send several pieces together


async def test_an_event_source_that_comes_again_is_told_to_stop_by_every_worker(tutorial: Tutorial) -> None:
    async with client_of(tutorial) as client:
        first = await client.request(**request_of("GET", "words again"))
        assert "id: 1\n" in first.text
        for _ in range(12):
            headers = {"Last-Event-ID": "1", "Connection": "close"}
            again = await client.request(**request_of("GET", "words again"), headers=headers)
            assert (again.status_code, again.content) == (204, b"")
    assert tutorial.calls("words", "again") == 1


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_client_that_disconnects_ends_the_call_of_the_provider(tutorial: Tutorial, method: str) -> None:
    before = tutorial.provider.disconnects
    async with client_of(tutorial) as client, client.stream(**request_of(method, "endless")) as response:
        async for line in response.aiter_lines():
            if "What is" in line:
                break
    await eventually_async(lambda: tutorial.provider.disconnects == before + 1)


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_an_error_before_the_stream_is_a_status_and_in_it_the_last_event(tutorial: Tutorial, method: str) -> None:
    async with client_of(tutorial) as client:
        refused = await client.request(**request_of(method, "refused"))
        assert (refused.status_code, list(refused.json())) == (424, ["error"])
        assert "no such key" in refused.json()["error"]
        async with httpx_sse.aconnect_sse(client, **request_of(method, "broken")) as source:
            *begun, last = [json.loads(event.data) async for event in source.aiter_sse()]
    assert begun[-1] == {"text": "What is"}
    assert (last["text"], last["status"], sorted(last)) == ("What is", 424, ["error", "status", "text"])


async def test_the_members_of_vllms_server_are_parameters(tutorial: Tutorial) -> None:
    body = {"prompt": "words parameters", "max_tokens": 7, "temperature": 0.5, "stream": True, "n": None}
    async with client_of(tutorial) as client:
        await client.post(PATH, json=body)
        await client.get(PATH, params={"prompt": "words parameters", "max_tokens": 7, "temperature": 0.5})
    asked = [request.json() for request in tutorial.provider.requests if b"words parameters" in request.body]
    assert [(request["max_tokens"], request["temperature"]) for request in asked] == [(7, 0.5), (7, 0.5)]


def test_the_setting_takes_another_model_by_its_id_and_none_while_the_server_runs(tutorial: Tutorial) -> None:
    sidecar = tutorial.sidecar
    model_id = sidecar.create_model(openai(tutorial.provider.url), name="unnamed")

    def set_to(model: str | None) -> None:
        sidecar.client.put("/_plugins/_ml/_settings", json={"persistent": {SETTING: model}}).raise_for_status()

    def statuses() -> set[int]:
        """Of a dozen connections, which the workers share; a GET without a prompt costs nothing."""
        asked = [sidecar.client.get(PATH, headers={"Connection": "close"}) for _ in range(12)]
        return {response.status_code for response in asked}

    try:
        set_to("")
        eventually(lambda: statuses() == {404})
        set_to(model_id)
        eventually(lambda: statuses() == {400})
        eventually(lambda: sidecar.client.post(PATH, json={"prompt": "words by id"}).text.endswith("data: [DONE]\n\n"))
    finally:
        set_to(None)
