"""What providers do that one would not expect, one test each."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.decoding.contract import Outcome
from opensearch_ml_stream.connectors.errors import StreamTruncated, UpstreamError
from opensearch_ml_stream.connectors.selection.presets import PRESETS
from tests.providers.recorded_streams import play, said

CHAT = "openai/v1/chat/completions"
RESPONSES = "openai/v1/responses"
ANTHROPIC = "anthropic/v1/messages"
GEMINI = "gemini/v1beta/generatecontent"
TGI = "huggingface/generate_stream"


def sse(*payloads: Mapping[str, Any] | str) -> bytes:
    texts = [payload if isinstance(payload, str) else json.dumps(payload) for payload in payloads]
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def ndjson(*payloads: Mapping[str, Any]) -> bytes:
    return "".join(json.dumps(payload) + "\n" for payload in payloads).encode()


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def played(preset: str, data: bytes) -> tuple[list[Chunk], Outcome]:
    return play(PRESETS[preset].decoder(), [data])


def error_of(preset: str, data: bytes) -> UpstreamError:
    _, outcome = played(preset, data)
    assert isinstance(outcome, UpstreamError), outcome
    return outcome


# OpenAI and those that speak it


def test_text_in_the_event_of_the_finish_reason_is_not_lost() -> None:
    chunks, outcome = played(CHAT, sse(delta("stop", content="end"), "[DONE]"))
    assert chunks == [Chunk("end")]
    assert isinstance(outcome, Ending)


def test_a_finish_reason_without_done_is_a_truncation() -> None:
    assert isinstance(error_of(CHAT, sse(delta(content="a"), delta("stop"))), StreamTruncated)


def test_done_without_a_finish_reason_is_a_good_end() -> None:
    _, outcome = played(CHAT, sse(delta(content="a"), "[DONE]"))
    assert outcome == Ending()


@pytest.mark.parametrize(
    ("error", "provider_status", "status", "reason"),
    [
        ({"error": {"message": "too many", "type": "tokens", "code": "rate_limit_exceeded"}}, 429, 429, "too many"),
        ({"error": {"message": "bad", "type": "invalid_request_error", "code": None}}, 400, 400, "bad"),
        ({"error": {"message": "gone", "type": "NotFoundError", "code": 404}}, 404, 424, "gone"),
        ({"error": "no more memory"}, None, 424, "no more memory"),
        ({"object": "error", "message": "down", "type": "x", "code": "3000"}, None, 424, "down"),
        ({"error": {"metadata": {}, "message": "Provider returned error", "code": 502}, **delta("error", content="")},
         502, 424, "Provider returned error"),
    ],
)  # fmt: skip
def test_an_error_in_the_stream_is_the_outcome_also_when_done_follows(
    error: dict[str, Any], provider_status: int | None, status: int, reason: str
) -> None:
    chunks, outcome = played(CHAT, sse(delta(content="a"), error, "[DONE]"))
    assert chunks == [Chunk("a")]
    assert isinstance(outcome, UpstreamError)
    assert (outcome.provider_status, outcome.status) == (provider_status, status)
    assert outcome.reason == f"Error from remote service: {reason}"


def test_only_choice_zero_is_the_answer() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "B"}, "finish_reason": "length"}]}
    both = {"choices": [{"index": 1, "delta": {"content": "C"}}, {"index": 0, "delta": {"content": "A"}}]}
    chunks, outcome = played(CHAT, sse(other, both, delta("stop"), "[DONE]"))
    assert chunks == [Chunk("A")]
    assert isinstance(outcome, Ending)
    assert outcome.finish_reason == "stop"


def _call(arguments: str, id: str | None = None, name: str | None = None, **index: int) -> dict[str, Any]:
    return delta(tool_calls=[{**index, "id": id, "function": {"name": name, "arguments": arguments}}])


def test_parallel_calls_stay_apart_when_a_server_gives_index_zero_to_all() -> None:
    data = sse(_call("{}", "a", "f", index=0), _call("{", "b", "g", index=0), _call("}", index=0), "[DONE]")
    _, _, calls = said(played(CHAT, data)[0])
    assert [(call["id"], call["arguments"]) for call in calls] == [("a", "{}"), ("b", "{}")]


def test_parallel_calls_stay_apart_when_a_server_gives_no_index() -> None:
    data = sse(_call("{", "a", "f"), _call("}"), _call("[]", "b", "g"), "[DONE]")
    _, _, calls = said(played(CHAT, data)[0])
    assert [(call["name"], call["arguments"]) for call in calls] == [("f", "{}"), ("g", "[]")]


def test_an_id_that_is_repeated_in_every_fragment_is_one_call() -> None:
    data = sse(_call("{", "a", "f", index=0), _call("}", "a", "f", index=0), "[DONE]")
    _, _, calls = said(played(CHAT, data)[0])
    assert [call["arguments"] for call in calls] == ["{}"]


def test_a_refusal_is_text() -> None:
    chunks, _ = played(CHAT, sse(delta(refusal="I can't"), "[DONE]"))
    assert chunks == [Chunk("I can't")]


@pytest.mark.parametrize("broken", ["{", "[1]", "7", '{"choices":[{"delta":{"content":{"a":1}}}]}'])
def test_one_broken_event_is_skipped_and_counted(broken: str) -> None:
    decoder = PRESETS[CHAT].decoder()
    chunks, outcome = play(decoder, [sse(delta(content="a"), broken, delta(content="b"), "[DONE]")])
    assert chunks == [Chunk("a"), Chunk("b")]
    assert isinstance(outcome, Ending)
    assert decoder.skipped_events == 1


def test_broken_events_without_end_are_an_error() -> None:
    error = error_of(CHAT, sse(delta(content="a"), *["{"] * 4, "[DONE]"))
    assert not isinstance(error, StreamTruncated)


def test_a_first_event_that_is_broken_is_an_error_at_once() -> None:
    assert not isinstance(error_of(CHAT, sse("<html>", delta(content="a"), "[DONE]")), StreamTruncated)


@pytest.mark.parametrize("odd", [5, ["x"], {"a": 1}, True])
def test_odd_types_of_details_do_no_harm(odd: object) -> None:
    payload = {"model": odd, "choices": [{"delta": {"content": "a"}, "finish_reason": odd}],
               "usage": {"prompt_tokens": odd, "completion_tokens_details": odd}}  # fmt: skip
    chunks, outcome = played(CHAT, sse(payload, "[DONE]"))
    assert chunks == [Chunk("a")]
    assert isinstance(outcome, Ending)
    assert outcome.finish_reason == "stop"
    assert outcome.usage is None or isinstance(outcome.usage.as_dict(), dict)


# OpenAI Responses


@pytest.mark.parametrize(("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter")])
def test_an_incomplete_response_says_why(reason: str, finish: str) -> None:
    last = {
        "type": "response.incomplete",
        "response": {"status": "incomplete", "incomplete_details": {"reason": reason}},
    }
    _, outcome = played(RESPONSES, sse(last))
    assert isinstance(outcome, Ending)
    assert (outcome.finish_reason, outcome.native_finish_reason) == (finish, reason)


@pytest.mark.parametrize(
    "last",
    [
        {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "oh"}}},
        {"type": "error", "code": "server_error", "message": "oh", "param": None, "sequence_number": 3},
        {"type": "error", "error": {"type": "server_error", "message": "oh"}},
    ],
)
def test_a_failed_response_is_an_error_and_no_empty_answer(last: dict[str, Any]) -> None:
    error = error_of(RESPONSES, sse(last))
    assert (error.provider_status, error.reason) == (500, "Error from remote service: oh")


# Anthropic


@pytest.mark.parametrize(
    ("kind", "provider_status", "status"),
    [("overloaded_error", 529, 424), ("rate_limit_error", 429, 429), ("invalid_request_error", 400, 400)],
)
def test_an_error_event_of_anthropic_has_the_status_it_would_have_had(
    kind: str, provider_status: int, status: int
) -> None:
    start = {"type": "message_start", "message": {"model": "m", "usage": {}}}
    error = error_of(ANTHROPIC, sse(start, {"type": "error", "error": {"type": kind, "message": "Overloaded"}}))
    assert (error.provider_status, error.status) == (provider_status, status)
    assert error.reason == "Error from remote service: Overloaded"


def test_the_usage_of_message_delta_replaces_that_of_message_start() -> None:
    data = sse(
        {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 10}},
        {"type": "message_delta", "delta": {"stop_reason": "refusal"}, "usage": {"output_tokens": 20}},
        {"type": "message_stop"},
    )
    _, outcome = played(ANTHROPIC, data)
    assert isinstance(outcome, Ending)
    assert outcome.usage is not None
    assert outcome.usage.as_dict() == {"input_tokens": 5, "output_tokens": 20, "total_tokens": 25}
    assert outcome.finish_reason == "content_filter"


# Gemini


def test_a_blocked_prompt_ends_the_stream() -> None:
    _, outcome = played(
        GEMINI, sse({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}})
    )
    assert isinstance(outcome, Ending)
    assert (outcome.finish_reason, outcome.native_finish_reason) == ("content_filter", "SAFETY")
    assert outcome.usage is not None
    assert outcome.usage.input_tokens == 4


@pytest.mark.parametrize("preset", [GEMINI, f"{GEMINI}/json-array"])
def test_an_error_of_gemini_keeps_its_code(preset: str) -> None:
    payload = {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}
    data = sse(payload) if preset == GEMINI else json.dumps([payload]).encode()
    error = error_of(preset, data)
    assert (error.status, error.reason) == (429, "Error from remote service: quota")


# The others


def test_an_error_line_of_ollama_under_status_200_is_an_error() -> None:
    data = ndjson({"model": "m", "message": {"content": "a"}, "done": False}, {"error": "model runner has stopped"})
    assert error_of("ollama/api/chat", data).reason == "Error from remote service: model runner has stopped"


@pytest.mark.parametrize(("kind", "status"), [("overloaded", 429), ("validation", 400), ("generation", 424)])
def test_an_error_of_tgi_is_an_error_also_as_first_event(kind: str, status: int) -> None:
    token = {"token": {"text": "a", "special": False}, "generated_text": None}
    for before in ([], [token]):
        error = error_of(TGI, sse(*before, {"error": "Model is overloaded", "error_type": kind}))
        assert (error.status, error.reason) == (status, "Error from remote service: Model is overloaded")


def test_an_error_event_of_the_v2_protocol_is_an_error() -> None:
    data = sse({"text_output": "a"}, {"error": "out of memory"})
    assert error_of("v2/models/infer_stream", data).reason == "Error from remote service: out of memory"


def test_an_empty_v2_stream_is_an_empty_answer() -> None:
    assert played("v2/models/infer_stream", b"") == ([], Ending())


def test_cohere_ends_with_an_error_when_it_says_so() -> None:
    v2 = {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "model died"}}
    assert error_of("cohere/v2/chat", sse(v2)).reason == "Error from remote service: model died"
    v1 = {"event_type": "stream-end", "finish_reason": "ERROR", "is_finished": True, "error": "model died"}
    assert error_of("cohere/v1/chat", ndjson(v1)).reason == "Error from remote service: model died"


def test_tool_calls_of_cohere_v1_come_once_though_they_are_sent_twice() -> None:
    data = ndjson(
        {"event_type": "tool-calls-chunk", "text": "I will look."},
        {"event_type": "tool-calls-chunk", "tool_call_delta": {"index": 0, "name": "f"}},
        {"event_type": "tool-calls-chunk", "tool_call_delta": {"index": 0, "parameters": '{"a":1}'}},
        {"event_type": "tool-calls-generation", "tool_calls": [{"name": "f", "parameters": {"a": 1}}]},
        {"event_type": "stream-end", "finish_reason": "COMPLETE", "response": {"tool_calls": [{"name": "f"}]}},
    )
    chunks, outcome = played("cohere/v1/chat", data)
    assert said(chunks) == ("", "I will look.", [{"id": None, "name": "f", "arguments": '{"a":1}'}])
    assert isinstance(outcome, Ending)
    assert outcome.finish_reason == "tool_calls"


def test_a_cumulative_text_that_is_rewritten_is_not_garbled() -> None:
    data = sse({"text": "The cat"}, {"text": "A dog"}, {"text": "The cat sat"}, "[DONE]")
    assert played("text/cumulative", data)[0] == [Chunk("The cat"), Chunk(" sat")]


def test_the_list_of_vllms_demonstration_server_is_read() -> None:
    assert played(TGI, sse({"text": ["a"]}, {"text": ["ab"]}, "[DONE]"))[0] == [Chunk("a"), Chunk("b")]
