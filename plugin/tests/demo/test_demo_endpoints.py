"""The demo provider's two endpoints, in memory.

That the providers' own clients read them, and at which pace they come, is in integration_tests/cli/test_demo_provider.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from opensearch_ml_stream.plugin.demo.canned_responses import canned_response
from opensearch_ml_stream.plugin.demo.provider import provider_app

QUESTION = "Hello"
CANNED = canned_response(QUESTION)
THREE_TOKENS = "".join(CANNED.tokens[:3])
BEARER = {"authorization": "Bearer k"}
KEY = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
WRONG_LIMITS = ("5", -1, 0, 1.5, True, [5])
TOO_FEW = "max_tokens: Input should be an integer of at least 1"


@pytest.fixture
async def provider() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(provider_app("a store")), base_url="http://demo"
    ) as client:
        yield client


def question(**more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 3, "messages": [{"role": "user", "content": QUESTION}], **more}


def events(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


async def test_a_whole_chat_completion_has_text_finish_reason_and_usage(provider: httpx.AsyncClient) -> None:
    body = (await provider.post(CHAT, json=question(), headers=BEARER)).json()
    assert (body["object"], body["model"]) == ("chat.completion", "m")
    assert body["choices"][0]["message"] == {"role": "assistant", "content": THREE_TOKENS, "refusal": None}
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"] == {"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4}


async def test_a_streamed_chat_completion_ends_with_usage_if_asked_for_and_done(provider: httpx.AsyncClient) -> None:
    body = question(stream=True, stream_options={"include_usage": True}, max_completion_tokens=3)
    response = await provider.post(CHAT, json=body, headers=BEARER)
    role, *deltas, end, usage = events(response)
    assert role["choices"][0]["delta"]["role"] == "assistant"
    assert "".join(delta["choices"][0]["delta"]["content"] for delta in deltas) == THREE_TOKENS
    assert (end["choices"][0]["finish_reason"], end["usage"]) == ("length", None)
    assert (usage["choices"], usage["usage"]["completion_tokens"]) == ([], 3)
    assert response.text.endswith("data: [DONE]\n\n")


async def test_a_chat_completion_without_a_limit_is_whole_and_streams_no_usage(provider: httpx.AsyncClient) -> None:
    body = {**question(stream=True, messages=[{"role": "user", "content": ""}]), "max_tokens": None}
    *deltas, end = events(await provider.post(CHAT, json=body, headers=BEARER))
    assert "".join(delta["choices"][0]["delta"]["content"] for delta in deltas) == canned_response("").text
    assert end["choices"][0]["finish_reason"] == "stop"
    assert not any("usage" in event for event in (*deltas, end))


async def test_a_whole_message_has_text_stop_reason_and_usage(provider: httpx.AsyncClient) -> None:
    body = (await provider.post(MESSAGES, json=question(), headers=KEY)).json()
    assert (body["type"], body["role"], body["model"]) == ("message", "assistant", "m")
    assert body["content"] == [{"type": "text", "text": THREE_TOKENS}]
    assert (body["stop_reason"], body["usage"]) == ("max_tokens", {"input_tokens": 1, "output_tokens": 3})


@pytest.mark.parametrize("thinking", [None, {"type": "disabled"}, {"type": "enabled", "budget_tokens": 1024}])
async def test_a_streamed_message_has_all_events_in_their_order_and_thinking_if_enabled(
    provider: httpx.AsyncClient, thinking: object
) -> None:
    response = await provider.post(MESSAGES, json=question(stream=True, thinking=thinking), headers=KEY)
    sent = events(response)
    kinds = [event["type"] for event in sent]
    assert [line.removeprefix("event: ") for line in response.text.splitlines() if line.startswith("event: ")] == kinds
    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
    blocks = [event["content_block"]["type"] for event in sent if event["type"] == "content_block_start"]
    enabled = thinking is not None and thinking != {"type": "disabled"}
    assert blocks == (["thinking", "text"] if enabled else ["text"])
    assert kinds.count("content_block_stop") == len(blocks)
    deltas = [event["delta"] for event in sent if event["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas) == THREE_TOKENS
    assert bool("".join(delta.get("thinking", "") for delta in deltas)) is enabled
    assert sent[-2]["delta"]["stop_reason"] == "max_tokens"


@pytest.mark.parametrize(
    ("path", "headers", "body", "status", "words"),
    [
        (CHAT, {}, {}, 401, "You didn't provide an API key"),
        (CHAT, BEARER, {}, 400, "you must provide a model parameter"),
        (CHAT, BEARER, {"model": "m"}, 400, "messages"),
        (CHAT, BEARER, [], 400, "not a JSON object"),
        (CHAT, BEARER, question(stream_options={}), 400, "only allowed when 'stream' is enabled"),
        (CHAT, BEARER, question(stream=True, stream_options="usage"), 400, "stream_options: Input should be an object"),
        *[(CHAT, BEARER, question(max_tokens=wrong), 400, TOO_FEW) for wrong in WRONG_LIMITS],
        (CHAT, BEARER, question(max_completion_tokens="5"), 400, "max_completion_tokens: Input should be an integer"),
        (MESSAGES, {}, {}, 401, "x-api-key header is required"),
        (MESSAGES, {"x-api-key": "k"}, {}, 400, "anthropic-version: header is required"),
        (MESSAGES, {"authorization": "k", "anthropic-version": "1"}, {"model": "m"}, 400, "max_tokens: Field required"),
        (MESSAGES, KEY, {"max_tokens": 1}, 400, "model: Field required"),
        (MESSAGES, KEY, question(model=5), 400, "model: Field required"),
        *[(MESSAGES, KEY, question(max_tokens=wrong), 400, TOO_FEW) for wrong in WRONG_LIMITS],
        (MESSAGES, KEY, question(stream=True, thinking="enabled"), 400, "thinking: Input should be an object"),
    ],
)
async def test_a_wrong_request_is_refused_as_the_real_provider_does(
    provider: httpx.AsyncClient, path: str, headers: dict[str, str], body: Any, status: int, words: str
) -> None:
    response = await provider.post(path, headers=headers, json=body)
    assert response.status_code == status
    assert words in response.json()["error"]["message"]
    assert ("type" in response.json()) is (path == MESSAGES)


async def test_a_body_that_is_not_json_is_refused(provider: httpx.AsyncClient) -> None:
    response = await provider.post(CHAT, headers=BEARER, content=b"{")
    assert response.status_code == 400
    assert "could not parse the JSON body" in response.json()["error"]["message"]
