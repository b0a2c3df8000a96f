"""`/v1/messages` as Anthropic's SDK calls it: models of providers of its own dialect and of another."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import pytest
from integration_tests.server.guarded_sidecars import ROLES, running_guarded
from integration_tests.support import connector_bodies
from integration_tests.support.background_provider import background_provider
from integration_tests.support.fake_provider import (
    FakeProvider,
    Request,
    Script,
    anthropic_stream,
    chunked_stream,
    json_response,
    openai_stream,
    sse_event,
)
from integration_tests.support.sidecars import Sidecar

QUESTION: Any = [{"role": "user", "content": "What is the weather in Ulm?"}]
WEATHER: Any = {"name": "weather", "description": "Says it", "input_schema": {"type": "object", "properties": {}}}
OPENAI_USAGE = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-fake", "stop_reason": "end_turn",
    "stop_sequence": None, "content": [{"type": "text", "text": "Dry"}], "new_member": 7,
    "usage": {"input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 1},
}  # fmt: skip
DIALECTS = ("openai", "anthropic")


@contextmanager
def calling(sidecar: Sidecar, api_key: str = "any") -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=sidecar.url, api_key=api_key, max_retries=0) as client:
        yield client


@contextmanager
def model(sidecar: Sidecar, dialect: str, script: Any) -> Iterator[tuple[anthropic.Anthropic, str, FakeProvider]]:
    """The SDK, a model of a provider of a dialect, and that provider."""
    with background_provider(script) as provider, calling(sidecar) as client:
        connector = getattr(connector_bodies, dialect)(provider.url)
        yield client, sidecar.create_model(connector), provider


def openai_answer(message: dict[str, Any], reason: str = "stop") -> Script:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    return json_response({"object": "chat.completion", "model": "gpt", "choices": [choice], "usage": OPENAI_USAGE})


def text_of(message: anthropic.types.Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


@pytest.mark.parametrize(
    ("dialect", "script"), [("openai", openai_answer({"content": "Dry"})), ("anthropic", json_response(MESSAGE))]
)
def test_a_message_is_created(shared_sidecar: Sidecar, dialect: str, script: Script) -> None:
    with model(shared_sidecar, dialect, script) as (client, name, provider):
        message = client.messages.create(
            model=name, max_tokens=9, messages=QUESTION, system="Be brief", stop_sequences=["x"]
        )
    assert (text_of(message), message.stop_reason) == ("Dry", "end_turn")
    sent = provider.requests[0].json()
    assert "Be brief" in json.dumps(sent) and "Ulm" in json.dumps(sent)
    assert sent["stop" if dialect == "openai" else "stop_sequences"] == ["x"]
    assert "stream" not in sent or sent["stream"] is False


def test_what_only_anthropic_knows_passes_both_ways(shared_sidecar: Sidecar) -> None:
    with model(shared_sidecar, "anthropic", json_response(MESSAGE)) as (client, name, provider):
        more: Any = {"context_management": {"edits": []}}
        message = client.messages.create(model=name, max_tokens=9, messages=QUESTION, extra_body=more)
    assert provider.requests[0].json()["context_management"] == {"edits": []}
    assert message.to_dict()["new_member"] == 7
    assert message.usage.cache_read_input_tokens == 4


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_message_is_streamed(shared_sidecar: Sidecar, dialect: str) -> None:
    script = openai_stream(["Dr", "y"]) if dialect == "openai" else anthropic_stream(["Dr", "y"])
    with (
        model(shared_sidecar, dialect, script) as (client, name, _),
        client.messages.stream(model=name, max_tokens=9, messages=QUESTION) as stream,
    ):
        texts = list(stream.text_stream)
        message = stream.get_final_message()
    assert "".join(texts) == text_of(message) == "Dry"
    assert message.stop_reason == "end_turn"
    assert message.usage.output_tokens == 2
    assert message.model == (name if dialect == "openai" else "claude-fake")


def test_a_tool_is_called_and_its_result_goes_back(shared_sidecar: Sidecar) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Ulm"}'}}

    def script(request: Request) -> Script:
        last = request.json()["messages"][-1]
        if last["role"] == "tool":
            return openai_answer({"content": f"It is {last['content']}"})
        return openai_answer({"content": None, "tool_calls": [call]}, "tool_calls")

    messages = list(QUESTION)
    with model(shared_sidecar, "openai", script) as (client, name, provider):
        asked: Any = {"model": name, "max_tokens": 9, "tools": [WEATHER]}
        first = client.messages.create(messages=messages, tool_choice={"type": "any"}, **asked)
        (block,) = first.content
        assert block.type == "tool_use" and (block.name, block.input) == ("weather", {"city": "Ulm"})
        assert first.stop_reason == "tool_use"
        result = {"type": "tool_result", "tool_use_id": block.id, "content": "dry"}
        messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        second = client.messages.create(messages=messages, **asked)
    assert text_of(second) == "It is dry"
    requests = [request.json() for request in provider.requests]
    assert requests[0]["tool_choice"] == "required"
    assert requests[1]["messages"][-2]["tool_calls"] == [call]


def test_a_streamed_tool_call_has_its_input(shared_sidecar: Sidecar) -> None:
    def delta(**function: Any) -> bytes:
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        return sse_event({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})

    end = sse_event({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    pieces = [delta(name="weather", arguments=""), delta(arguments='{"ci'), delta(arguments='ty":"Ulm"}'), end]
    script = chunked_stream([*pieces, b"data: [DONE]\n\n"])
    with (
        model(shared_sidecar, "openai", script) as (client, name, _),
        client.messages.stream(model=name, max_tokens=9, messages=QUESTION, tools=[WEATHER]) as stream,
    ):
        (block,) = stream.get_final_message().content
    assert block.type == "tool_use" and block.input == {"city": "Ulm"}


def test_thinking_is_a_block_of_its_own_with_its_signature(shared_sidecar: Sidecar) -> None:
    def block(index: int, kind: str, *deltas: dict[str, str]) -> list[bytes]:
        start: dict[str, Any] = {
            "type": "content_block_start",
            "index": index,
            "content_block": {"type": kind, kind: ""},
        }
        events = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        stop = {"type": "content_block_stop", "index": index}
        return [sse_event(event, str(event["type"])) for event in (start, *events, stop)]

    start = {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}}
    delta = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}}
    thinking = (
        {"type": "thinking_delta", "thinking": "Hm"},
        {"type": "signature_delta", "signature": "sig"},
    )
    pieces = [
        sse_event(start, "message_start"),
        *block(0, "thinking", *thinking),
        *block(1, "text", {"type": "text_delta", "text": "Dry"}),
        sse_event(delta, "message_delta"),
        sse_event({"type": "message_stop"}, "message_stop"),
    ]
    asked: Any = {"max_tokens": 2000, "messages": QUESTION, "thinking": {"type": "enabled", "budget_tokens": 1024}}
    with (
        model(shared_sidecar, "anthropic", chunked_stream(pieces)) as (client, name, provider),
        client.messages.stream(model=name, **asked) as stream,
    ):
        thought, said = stream.get_final_message().content
    assert thought.type == "thinking" and (thought.thinking, thought.signature) == ("Hm", "sig")
    assert said.type == "text" and said.text == "Dry"
    assert provider.requests[0].json()["thinking"] == asked["thinking"]


@pytest.mark.parametrize("is_stream", [True, False])
def test_errors_are_those_of_the_sdk(shared_sidecar: Sidecar, is_stream: bool) -> None:
    asked: Any = {"max_tokens": 9, "messages": QUESTION, "stream": is_stream}
    with calling(shared_sidecar) as client, pytest.raises(anthropic.NotFoundError) as unknown:
        client.messages.create(model="none-such", **asked)
    assert unknown.value.type == "not_found_error"
    overloaded = json_response({"error": {"message": "Too many", "type": "overloaded_error"}}, 529)
    with (
        model(shared_sidecar, "anthropic", overloaded) as (client, name, _),
        pytest.raises(anthropic.APIStatusError) as fault,
    ):
        client.messages.create(model=name, **asked)
    assert (fault.value.status_code, fault.value.type) == (424, "overloaded_error")
    limited = json_response({"error": {"message": "Slower"}}, 429, retry_after="7")
    with (
        model(shared_sidecar, "openai", limited) as (client, name, _),
        pytest.raises(anthropic.RateLimitError, match="Slower") as slower,
    ):
        client.messages.create(model=name, **asked)
    assert (slower.value.type, slower.value.response.headers["retry-after"]) == ("rate_limit_error", "7")


@pytest.mark.parametrize("is_stream", [True, False])
def test_a_conversation_that_is_too_long_is_told_in_anthropic_s_words(shared_sidecar: Sidecar, is_stream: bool) -> None:
    said = {"message": "This model's maximum context length is 9 tokens", "code": "context_length_exceeded"}
    with (
        model(shared_sidecar, "openai", json_response({"error": said}, 400)) as (client, name, _),
        pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: .*maximum context length") as raised,
    ):
        client.messages.create(model=name, max_tokens=9, messages=QUESTION, stream=is_stream)
    assert raised.value.type == "invalid_request_error"


def test_a_member_that_the_provider_cannot_take_is_named(shared_sidecar: Sidecar) -> None:
    search: Any = {"type": "web_search_20250305", "name": "web_search"}
    with (
        model(shared_sidecar, "openai", openai_stream(["x"])) as (client, name, provider),
        pytest.raises(anthropic.BadRequestError, match=r"tools\.0") as refused,
    ):
        client.messages.create(model=name, max_tokens=9, messages=QUESTION, tools=[search])
    assert refused.value.type == "invalid_request_error"
    assert provider.requests == []


def test_what_is_left_out_unasked_is_named(shared_sidecar: Sidecar) -> None:
    more: Any = {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}
    with model(shared_sidecar, "openai", openai_answer({"content": "Dry"})) as (client, name, _):
        message = client.messages.create(model=name, max_tokens=9, messages=QUESTION, extra_body=more)
    told: Any = message.to_dict()["opensearch_ml_stream"]
    assert told["warnings"] == ["context_management was left out: the model's provider has no such thing"]
    assert text_of(message) == "Dry"


def test_a_fault_in_mid_stream_is_raised(shared_sidecar: Sidecar) -> None:
    fault = sse_event({"error": {"message": "It broke", "code": 503}})
    script = chunked_stream([sse_event({"choices": [{"index": 0, "delta": {"content": "Dr"}}]}), fault])
    with (
        model(shared_sidecar, "openai", script) as (client, name, _),
        client.messages.stream(model=name, max_tokens=9, messages=QUESTION) as stream,
        pytest.raises(anthropic.APIStatusError, match="It broke"),
    ):
        stream.get_final_message()


def test_tokens_are_counted_by_the_provider(shared_sidecar: Sidecar) -> None:
    with model(shared_sidecar, "anthropic", json_response({"input_tokens": 42})) as (client, name, provider):
        response = client.messages.with_raw_response.count_tokens(model=name, messages=QUESTION, tools=[WEATHER])
    assert response.parse().input_tokens == 42
    assert "x-token-count" not in response.headers
    (request,) = provider.requests
    assert request.path == "/v1/messages/count_tokens"
    assert set(request.json()) == {"model", "messages", "tools"}


@pytest.mark.parametrize(
    ("dialect", "calls", "fields"),
    [
        ("openai", 0, {}),
        ("anthropic", 1, {}),
        ("anthropic", 0, {"guardrails": {"type": "local_regex", "input_guardrail": {"regex": ["secret"]}}}),
    ],
    ids=["other dialect", "no count there", "guarded"],
)
def test_tokens_are_estimated_where_nobody_counts_them(
    shared_sidecar: Sidecar, dialect: str, calls: int, fields: dict[str, Any]
) -> None:
    none_there = json_response({"error": {"message": "not here"}}, 404)
    with background_provider(none_there) as provider, calling(shared_sidecar) as client:
        name = shared_sidecar.create_model(getattr(connector_bodies, dialect)(provider.url), **fields)
        response = client.messages.with_raw_response.count_tokens(model=name, messages=QUESTION)
        wrong: Any = [{"role": "x", "content": "y"}]
        with pytest.raises(anthropic.BadRequestError, match=r"messages\.0\.role"):
            client.messages.count_tokens(model=name, messages=wrong)
    assert response.headers["x-token-count"] == "estimate"
    assert 0 < response.parse().input_tokens < 100
    assert len(provider.requests) == 2 * calls


def test_where_a_budget_is_spent_the_provider_is_not_asked_to_count_either(shared_sidecar: Sidecar) -> None:
    usage = {"input_tokens": 9, "output_tokens": 9}
    answer = {"id": "1", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": usage}
    with background_provider(json_response(answer)) as provider, calling(shared_sidecar) as client:
        budgets = [{"tokens": 10, "window": "300d"}]
        name = shared_sidecar.create_model(connector_bodies.anthropic(provider.url), _sidecar={"budgets": budgets})
        client.messages.create(model=name, max_tokens=9, messages=QUESTION)
        with pytest.raises(anthropic.RateLimitError, match="budget"):
            client.messages.count_tokens(model=name, messages=QUESTION)
        assert [request.path for request in provider.requests] == ["/v1/messages"]


def test_a_fault_of_the_provider_that_counts_is_told(shared_sidecar: Sidecar) -> None:
    refused = json_response({"error": {"message": "Who are you?"}}, 401)
    with (
        model(shared_sidecar, "anthropic", refused) as (client, name, _),
        pytest.raises(anthropic.APIStatusError, match="Who are you") as fault,
    ):
        client.messages.count_tokens(model=name, messages=QUESTION)
    assert (fault.value.status_code, fault.value.type) == (424, "api_error")


def test_the_key_of_the_sdk_is_the_callers(tmp_path: Path) -> None:
    with running_guarded(tmp_path) as guarded, background_provider(openai_stream(["Dr", "y"])) as provider:
        name = guarded.create_model(connector_bodies.openai(provider.url))
        key = guarded.keys[ROLES[0]]
        with (
            calling(guarded.sidecar, key) as client,
            client.messages.stream(model=name, max_tokens=9, messages=QUESTION) as stream,
        ):
            assert stream.get_final_text() == "Dry"
        with calling(guarded.sidecar, "wrong") as client, pytest.raises(anthropic.AuthenticationError) as refused:
            client.messages.create(model=name, max_tokens=9, messages=QUESTION)
    assert refused.value.type == "authentication_error"
    (request,) = provider.requests
    assert key not in str(request.headers) + request.body.decode()
