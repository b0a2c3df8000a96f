"""The demo provider over a real socket, read by OpenAI's and Anthropic's own clients."""

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import anthropic
import httpx
import openai
import pytest

from opensearch_ml_stream.plugin.demo.canned_responses import MAX_PACE_SECONDS, canned_response
from opensearch_ml_stream.plugin.demo.provider import demo_provider

QUESTION = "Hello"
CANNED = canned_response(QUESTION)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with demo_provider("a store") as running:
        yield running


@pytest.fixture
def gpt(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        yield client


@pytest.fixture
def claude(url: str) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        yield client


def test_openais_client_streams_role_text_finish_reason_and_usage(gpt: openai.OpenAI) -> None:
    chunks = list(
        gpt.chat.completions.create(
            model="gpt-demo",
            messages=[{"role": "system", "content": "s"}, {"role": "user", "content": QUESTION}],
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    *deltas, last = chunks
    assert deltas[0].choices[0].delta.role == "assistant"
    assert "".join(one.choices[0].delta.content or "" for one in deltas) == CANNED.text
    assert [one.choices[0].finish_reason for one in deltas[-2:]] == [None, "stop"]
    assert last.choices == [] and last.usage is not None
    assert last.usage.completion_tokens == len(CANNED.tokens)
    assert len({one.id for one in chunks}) == 1
    assert {one.model for one in chunks} == {"gpt-demo"}


def test_without_include_usage_no_chunk_has_it(gpt: openai.OpenAI) -> None:
    question: Any = [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]
    chunks = list(gpt.chat.completions.create(model="m", messages=question, stream=True, max_tokens=2))
    assert all(one.usage is None and len(one.choices) == 1 for one in chunks)
    assert chunks[-1].choices[0].finish_reason == "length"
    assert len([one for one in chunks if one.choices[0].delta.content]) == 2


def test_openais_client_reads_a_whole_response(gpt: openai.OpenAI) -> None:
    response = gpt.chat.completions.create(model="m", messages=[{"role": "user", "content": QUESTION}])
    assert response.choices[0].message.content == CANNED.text
    assert response.usage is not None and response.usage.completion_tokens == len(CANNED.tokens)


def test_anthropics_client_streams_all_events_in_their_order(claude: anthropic.Anthropic) -> None:
    question: Any = [{"role": "user", "content": QUESTION}]
    kinds: list[str] = []
    with claude.messages.create(model="claude-demo", max_tokens=1000, messages=question, stream=True) as events:
        text = ""
        for event in events:
            if not kinds or kinds[-1] != event.type:
                kinds.append(event.type)
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                text += event.delta.text
    assert kinds == [
        *("message_start", "content_block_start", "content_block_delta"),
        *("content_block_stop", "message_delta", "message_stop"),
    ]
    assert text == CANNED.text


def test_anthropics_client_puts_the_whole_message_together_with_thinking(claude: anthropic.Anthropic) -> None:
    question: Any = [{"role": "user", "content": QUESTION}]
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}
    with claude.messages.stream(model="m", max_tokens=2000, messages=question, thinking=thinking) as stream:
        message = stream.get_final_message()
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.stop_reason == "end_turn"
    assert message.usage.output_tokens == len(CANNED.tokens)


def test_anthropics_client_reads_a_whole_response(claude: anthropic.Anthropic) -> None:
    response = claude.messages.create(model="m", max_tokens=3, messages=[{"role": "user", "content": QUESTION}])
    assert response.content[0].type == "text"
    assert response.content[0].text == "".join(CANNED.tokens[:3])
    assert response.stop_reason == "max_tokens"


def test_pings_are_sent_as_anthropic_does(url: str) -> None:
    body = {"model": "m", "max_tokens": 1, "stream": True, "messages": [{"role": "user", "content": QUESTION}]}
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    response = httpx.post(f"{url}/v1/messages", json=body, headers=headers).text
    assert 'event: ping\ndata: {"type":"ping"}\n\n' in response


@pytest.mark.slow
def test_tokens_come_at_the_pace_of_a_real_model(gpt: openai.OpenAI) -> None:
    question: Any = [{"role": "user", "content": QUESTION}]
    chunks = gpt.chat.completions.create(model="m", messages=question, stream=True, max_tokens=8)
    times = [time.monotonic() for chunk in chunks if chunk.choices[0].delta.content]
    mean = (times[-1] - times[0]) / (len(times) - 1)
    assert MAX_PACE_SECONDS / 4 < mean < MAX_PACE_SECONDS * 15
    assert all(after > before for before, after in pairwise(times))
