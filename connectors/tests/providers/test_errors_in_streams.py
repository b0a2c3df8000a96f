"""Errors that come within a stream under a good status, from every provider and in every form."""

import json
from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.errors import CONTEXT_LENGTH_EXCEEDED, StreamTruncated, UpstreamError
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.connectors.stream_parameter import read_stream_spec
from tests.providers.eventstream_frames import invoke_chunk
from tests.providers.recorded_streams import play
from tests.providers.stream_bodies import decode, delta, error_of, ndjson, sse

PREFIX = "Error from remote service: "
CHAT = "openai/v1/chat/completions"
OF_EVENTS = sorted(name for name, spec in SHIPPED.presets.items() if spec.framing is SSEFraming)
OF_CHOICES = (
    CHAT, "openai/v1/completions", "databricks/invocations", "watsonx/text/chat", "dashscope/v1/chat/completions",
)  # fmt: skip
FORMS: list[dict[str, Any]] = [
    {"detail": "boom"},
    {"detail": [{"loc": ["body"], "msg": "boom"}]},
    {"code": "InternalError", "message": "boom"},
    {"code": 500, "msg": "boom"},
    {"type": "error", "message": "boom"},
    {"message": "boom"},
    {"error": "boom"},
    {"errors": [{"code": 7, "message": "boom"}]},
    {"status": 503, "title": "boom"},
    {"object": "error", "message": "boom"},
    {"base_resp": {"status_code": 1013, "status_msg": "boom"}, "choices": None},
]


@pytest.mark.parametrize("preset", OF_EVENTS)
@pytest.mark.parametrize(
    "data", ['{"code":400,"details":"boom"}', '{"fault":"boom"}', "boom", '{"error":{"m":"boom"}}']
)
def test_an_event_that_is_named_error_is_one_in_every_dialect(preset: str, data: str) -> None:
    error = error_of(preset, f"event: error\ndata: {data}\n\ndata: [DONE]\n\n".encode())
    assert error.reason.startswith(PREFIX) and "boom" in error.reason


@pytest.mark.parametrize("preset", OF_CHOICES)
@pytest.mark.parametrize("form", FORMS)
def test_an_object_without_choices_that_says_what_is_wrong_is_an_error(preset: str, form: dict[str, Any]) -> None:
    text = {"choices": [{"index": 0, "delta": {"content": "a"}, "text": "a"}]}
    assert error_of(preset, sse(form, "[DONE]")).reason == f"{PREFIX}boom"
    chunks, outcome = decode(preset, sse(text, form, "[DONE]"))
    assert chunks == [Chunk("a")]
    assert isinstance(outcome, UpstreamError) and outcome.reason == f"{PREFIX}boom"


def test_an_error_of_the_choice_is_one() -> None:
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error", "error": {"code": 502, "message": "boom"}}
    error = error_of(CHAT, sse(delta(content="a"), {"choices": [choice]}, "[DONE]"))
    assert (error.reason, error.provider_status) == (f"{PREFIX}boom", 502)


@pytest.mark.parametrize(
    "healthy",
    [
        {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
        {"choices": [], "code": 0, "message": "Success"},
        {"type": "ping"},
        {"message": "", "usage": None},
        {"choices": [], "message": "done", "usage": {"prompt_tokens": 1}},
        {"choices": [{"index": 0, "delta": {}}], "message": "ok", "code": 7},
    ],
)
def test_an_event_that_says_nothing_of_the_answer_is_passed_over(healthy: dict[str, Any]) -> None:
    chunks, outcome = decode(CHAT, sse(healthy, delta(content="a"), healthy, delta("stop"), "[DONE]"))
    assert chunks == [Chunk("a")]
    assert isinstance(outcome, Ending)


@pytest.mark.parametrize("preset", OF_CHOICES)
@pytest.mark.parametrize("before", [[], [{"choices": [], "prompt_filter_results": []}], [{"id": "x"}]])
def test_an_end_with_nothing_before_it_is_an_error(preset: str, before: list[dict[str, Any]]) -> None:
    error = error_of(preset, sse(*before, "[DONE]"))
    assert (error.reason.partition(":")[0], error.status) == ("The provider ended the stream without an answer", 424)


@pytest.mark.parametrize(
    ("before", "ending"),
    [
        (delta(role="assistant"), Ending()),
        (delta("length"), Ending("length", "length")),
        ({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 0}}, Ending(usage=Usage(1, 0))),
    ],
)
def test_an_answer_may_be_empty(before: dict[str, Any], ending: Ending) -> None:
    assert decode(CHAT, sse(before, "[DONE]")) == ([], ending)


@pytest.mark.parametrize(
    ("preset", "data"),
    [
        ("anthropic/v1/messages", sse({"error": {"message": "boom"}})),
        ("anthropic/v1/messages", sse({"message": "boom"})),
        ("openai/v1/responses", sse({"detail": "boom"})),
        ("openai/v1/responses", sse('[{"error": {"message": "boom"}}]')),
        ("gemini/v1beta/generatecontent", sse('[{"error": {"message": "boom"}}]')),
        ("gemini/v1beta/generatecontent", sse({"message": "boom"})),
        ("gemini/v1beta/interactions", sse({"error": {"message": "boom"}})),
        ("cohere/v2/chat", sse({"id": "i", "message": "boom"})),
        ("cohere/v1/chat", ndjson({"message": "boom"})),
        ("ollama/api/chat", ndjson({"message": "boom"})),
        ("dashscope/generation", sse({"code": "Throttling", "message": "boom"})),
        ("dashscope/generation", sse({"error": {"message": "boom"}})),
        ("huggingface/generate_stream", sse({"detail": "boom"})),
        ("huggingface/generate_stream", sse({"token": {"text": "a"}}, {"message": "boom"})),
        ("cloudflare/ai/run", sse({"success": False, "errors": [{"message": "boom"}]})),
        ("cloudflare/ai/run", sse({"response": "a"}, {"success": False, "errors": [{"message": "boom"}]})),
        ("watsonx/text/generation", sse({"errors": [{"message": "boom"}], "status_code": 500})),
        ("v2/models/infer_stream", sse({"detail": "boom"})),
        ("text/cumulative", sse({"text": "a"}, {"message": "boom"})),
        ("bedrock/invoke", invoke_chunk({"message": "boom"})),
        ("bedrock/invoke", invoke_chunk({"outputs": [{"text": "a"}]}) + invoke_chunk({"message": "boom"})),
    ],
)  # fmt: skip
def test_what_is_no_event_of_its_provider_but_an_error_is_one(preset: str, data: bytes) -> None:
    assert error_of(preset, data).reason == f"{PREFIX}boom"


@pytest.mark.parametrize(
    ("preset", "event"),
    [
        (CHAT, {"error": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}}),
        ("openai/v1/responses", {"type": "response.failed", "response": {
            "error": {"code": "context_length_exceeded", "message": "Your input exceeds the context window"}}}),
        ("anthropic/v1/messages", {"type": "error", "error": {
            "type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}}),
        ("gemini/v1beta/generatecontent", {"error": {"code": 400, "status": "INVALID_ARGUMENT",
            "message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."}}),
    ],
)  # fmt: skip
def test_a_conversation_that_is_too_long_has_the_same_code_from_every_provider(
    preset: str, event: dict[str, Any]
) -> None:
    error = error_of(preset, sse(event))
    assert (error.provider.code, error.status) == (CONTEXT_LENGTH_EXCEEDED, 400)


def test_a_failed_response_that_says_nothing_shows_nothing_of_its_request() -> None:
    failed = {"type": "response.failed", "response": {"status": "failed", "error": None, "instructions": "private"}}
    assert error_of("openai/v1/responses", sse(failed)).reason == f"{PREFIX}it gives no reason"


def custom(data: bytes, **spec: Any) -> Any:
    stream = {"framing": "sse", "events": {"text": "$.t"}, "terminator": {"data": "[DONE]"}, **spec}
    return play(read_stream_spec(json.dumps(stream)).decoder(), [data])


def test_a_stream_by_rules_of_its_own_knows_errors_that_they_do_not_name() -> None:
    for end in ('{"error": {"message": "boom"}}', '[{"error": "boom"}]'):
        chunks, outcome = custom(sse({"t": "a"}, end, "[DONE]"))
        assert (chunks, outcome.reason) == ([Chunk("a")], f"{PREFIX}boom")
    _, outcome = custom(b'event: error\ndata: {"x":"boom"}\n\ndata: [DONE]\n\n')
    assert "boom" in outcome.reason
    _, outcome = custom(sse("[DONE]"))
    assert "without an answer" in outcome.reason


def test_what_such_rules_do_not_read_may_as_well_be_no_error() -> None:
    for other in ({"message": "m"}, {"t": "b", "error": "none"}, {"detail": "d"}):
        _, outcome = custom(sse({"t": "a"}, other, "[DONE]"))
        assert isinstance(outcome, Ending)
    assert isinstance(custom(sse({"message": "Loading"}, {"t": "a"}, "[DONE]"))[1], Ending)
    assert isinstance(custom(sse({"t": "a"}), terminator={"data": "[DONE]", "eof_ok": False})[1], StreamTruncated)


@pytest.mark.parametrize("form", FORMS[:-1])
def test_a_described_server_that_sends_an_error_alone_has_not_answered(form: dict[str, Any]) -> None:
    assert "boom" in custom(sse(form, "[DONE]"))[1].reason
