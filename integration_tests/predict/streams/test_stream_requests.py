"""Requests for a stream: in any number of pieces, and every way to be refused before it begins."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest
from integration_tests.predict.streams.stream_calls import QUESTION, openai_model, stream_path
from integration_tests.support.fake_provider import FakeProvider, openai_stream
from integration_tests.support.sidecars import Sidecar


async def test_a_body_in_many_pieces_is_one_request(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    prompt, size = "ünï " * 200, 7
    body = json.dumps({"parameters": {"inputs": prompt}}, ensure_ascii=False).encode()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size]

    async with FakeProvider(openai_stream(["ok"])) as provider:
        model_id = await openai_model(sidecar, provider.url)
        headers = {"content-type": "application/json"}
        response = await client.post(stream_path(model_id), content=pieces(), headers=headers)
    assert response.status_code == 200
    assert provider.requests[0].json()["messages"][0]["content"] == prompt


async def test_a_body_over_the_limit_is_a_413(client: httpx.AsyncClient) -> None:
    response = await client.post(stream_path("m"), content=b" " * (10 * 1024 * 1024 + 1))
    assert response.status_code == 413
    assert response.json()["status"] == 413


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "parse_exception"),
        (b'{"parameters": {', "json_e_o_f_exception"),
        (b'{"parameters": 7}', "illegal_argument_exception"),
        (b'{"parameters": {"a": 1, "a": 2}}', "json_parse_exception"),
        (b"\xff", "parse_exception"),
    ],
)
async def test_a_body_that_is_not_a_request_is_a_400(client: httpx.AsyncClient, body: bytes, kind: str) -> None:
    response = await client.post(stream_path("m"), content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert response.json()["error"]["type"] == kind


async def test_an_unknown_model_is_a_404_before_the_stream(client: httpx.AsyncClient) -> None:
    response = await client.post(stream_path("nope"), json=QUESTION)
    assert response.status_code == 404
    assert response.json()["error"]["reason"] == "Failed to find model"


async def test_a_missing_parameter_is_named_and_the_prompt_is_not(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    async with FakeProvider([]) as provider:
        model_id = await openai_model(sidecar, provider.url)
        response = await client.post(stream_path(model_id), json={"parameters": {"question": "my secret prompt"}})
    assert response.status_code == 400
    assert "inputs" in response.json()["error"]["reason"]
    assert "secret" not in response.text
    assert provider.requests == []


async def test_a_disabled_model_is_a_403(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    async with FakeProvider([]) as provider:
        model_id = await openai_model(sidecar, provider.url, is_enabled=False)
        response = await client.post(stream_path(model_id), json=QUESTION)
    assert response.status_code == 403
    assert response.json()["error"]["reason"] == "Model is disabled."


async def test_a_rate_limit_is_a_429_with_the_time_to_wait(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    async with FakeProvider(openai_stream(["ok"])) as provider:
        limiter = {"limit": "2", "unit": "HOURS"}
        model_id = await openai_model(sidecar, provider.url, rate_limiter=limiter)
        responses = [await client.post(stream_path(model_id), json=QUESTION) for _ in range(3)]
    assert [response.status_code for response in responses] == [200, 200, 429]
    assert 1700 < int(responses[2].headers["retry-after"]) <= 1800
