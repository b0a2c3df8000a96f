"""The demo provider, held to what OpenAI's and Anthropic's own clients and our decoders expect of the real ones."""

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import anthropic
import httpx
import openai
import pytest

from opensearch_ml_stream.plugin.demo.canned_responses import MAX_PACE_SECONDS, answer_to
from opensearch_ml_stream.plugin.demo.provider import demo_provider

QUESTION = "Hello"
ANSWER = answer_to(QUESTION)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with demo_provider() as running:
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
    assert "".join(one.choices[0].delta.content or "" for one in deltas) == ANSWER.text
    assert [one.choices[0].finish_reason for one in deltas[-2:]] == [None, "stop"]
    assert last.choices == [] and last.usage is not None
    assert last.usage.completion_tokens == len(ANSWER.tokens)
    assert len({one.id for one in chunks}) == 1
    assert {one.model for one in chunks} == {"gpt-demo"}


def test_without_include_usage_no_chunk_tells_it(gpt: openai.OpenAI) -> None:
    question: Any = [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]
    chunks = list(gpt.chat.completions.create(model="m", messages=question, stream=True, max_tokens=2))
    assert all(one.usage is None and len(one.choices) == 1 for one in chunks)
    assert chunks[-1].choices[0].finish_reason == "length"
    assert len([one for one in chunks if one.choices[0].delta.content]) == 2


def test_openais_client_reads_a_whole_answer(gpt: openai.OpenAI) -> None:
    answer = gpt.chat.completions.create(model="m", messages=[{"role": "user", "content": QUESTION}])
    assert answer.choices[0].message.content == ANSWER.text
    assert answer.usage is not None and answer.usage.completion_tokens == len(ANSWER.tokens)


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
    assert text == ANSWER.text


def test_anthropics_client_puts_the_whole_message_together_with_thinking(claude: anthropic.Anthropic) -> None:
    question: Any = [{"role": "user", "content": QUESTION}]
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}
    with claude.messages.stream(model="m", max_tokens=2000, messages=question, thinking=thinking) as stream:
        message = stream.get_final_message()
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.stop_reason == "end_turn"
    assert message.usage.output_tokens == len(ANSWER.tokens)


def test_anthropics_client_reads_a_whole_answer(claude: anthropic.Anthropic) -> None:
    answer = claude.messages.create(model="m", max_tokens=3, messages=[{"role": "user", "content": QUESTION}])
    assert answer.content[0].type == "text"
    assert answer.content[0].text == "".join(ANSWER.tokens[:3])
    assert answer.stop_reason == "max_tokens"


def test_pings_are_sent_as_anthropic_does(url: str) -> None:
    body = {"model": "m", "max_tokens": 1, "stream": True, "messages": [{"role": "user", "content": QUESTION}]}
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    answer = httpx.post(f"{url}/v1/messages", json=body, headers=headers).text
    assert 'event: ping\ndata: {"type":"ping"}\n\n' in answer


def test_tokens_come_at_the_pace_of_a_real_model(gpt: openai.OpenAI) -> None:
    question: Any = [{"role": "user", "content": QUESTION}]
    chunks = gpt.chat.completions.create(model="m", messages=question, stream=True, max_tokens=8)
    times = [time.monotonic() for chunk in chunks if chunk.choices[0].delta.content]
    mean = (times[-1] - times[0]) / (len(times) - 1)
    assert MAX_PACE_SECONDS / 4 < mean < MAX_PACE_SECONDS * 3
    assert all(after > before for before, after in pairwise(times))


@pytest.mark.parametrize(
    ("path", "headers", "body", "status", "said"),
    [
        ("chat/completions", {}, {}, 401, "You didn't provide an API key"),
        ("chat/completions", {"authorization": "Bearer k"}, {}, 400, "you must provide a model parameter"),
        ("chat/completions", {"authorization": "Bearer k"}, {"model": "m"}, 400, "messages"),
        ("chat/completions", {"authorization": "Bearer k"}, [], 400, "not a JSON object"),
        (
            "chat/completions",
            {"authorization": "Bearer k"},
            {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream_options": {}},
            400,
            "only allowed when 'stream' is enabled",
        ),
        ("messages", {}, {}, 401, "x-api-key header is required"),
        ("messages", {"x-api-key": "k"}, {}, 400, "anthropic-version: header is required"),
        ("messages", {"x-api-key": "k", "anthropic-version": "1"}, {"model": "m"}, 400, "max_tokens: Field required"),
    ],
)
def test_a_wrong_request_is_refused_as_the_real_provider_does(
    url: str, path: str, headers: dict[str, str], body: Any, status: int, said: str
) -> None:
    response = httpx.post(f"{url}/v1/{path}", headers=headers, json=body)
    assert response.status_code == status
    assert said in response.json()["error"]["message"]
    assert ("type" in response.json()) is (path == "messages")


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What is the meaning of life?", "The meaning of life"),
        ("what is OpenSearch", "search and analytics engine"),
        ("Why is the sky blue?", 'You asked: "Why is the sky blue?"'),
        ("", "You asked nothing"),
    ],
)
def test_the_answer_has_to_do_with_the_question_and_is_always_the_same(question: str, words: str) -> None:
    assert words in answer_to(question).text
    assert answer_to(question) == answer_to(question)
