"""OpenAI chat completions, and what the servers that speak them do that one would not expect."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.errors import StreamTruncated, UpstreamError
from tests.providers.recorded_streams import join_chunks
from tests.providers.stream_bodies import decode, delta, error_of, sse

CHAT = "openai/v1/chat/completions"


def test_text_in_the_event_of_the_finish_reason_is_not_lost() -> None:
    chunks, outcome = decode(CHAT, sse(delta("stop", content="end"), "[DONE]"))
    assert chunks == [Chunk("end")]
    assert isinstance(outcome, Ending)


def test_a_finish_reason_without_done_is_a_good_end() -> None:
    _, outcome = decode(CHAT, sse(delta(content="a"), delta("length")))
    assert outcome == Ending("length", "length")


def test_text_without_a_finish_reason_is_a_truncation() -> None:
    assert isinstance(error_of(CHAT, sse(delta(content="a"))), StreamTruncated)


def test_tool_calls_without_a_finish_reason_end_with_tool_calls() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
    _, outcome = decode(CHAT, sse(delta(tool_calls=[call]), "[DONE]"))
    assert outcome == Ending("tool_calls")


def test_the_usage_of_groq_counts() -> None:
    groq = {"choices": [], "x_groq": {"usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}}}
    _, outcome = decode(CHAT, sse(delta("stop"), groq, "[DONE]"))
    assert isinstance(outcome, Ending)
    assert outcome.usage == Usage(2, 3, 5)


def test_reasoning_that_is_counted_apart_is_part_of_the_output() -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 7}}
    xai = {"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 12, **details}}
    _, outcome = decode(CHAT, sse(delta("stop"), xai, "[DONE]"))
    assert isinstance(outcome, Ending)
    assert outcome.usage == Usage(2, 10, 12, reasoning_tokens=7)


def test_done_without_a_finish_reason_is_a_good_end() -> None:
    _, outcome = decode(CHAT, sse(delta(content="a"), "[DONE]"))
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
    chunks, outcome = decode(CHAT, sse(delta(content="a"), error, "[DONE]"))
    assert chunks == [Chunk("a")]
    assert isinstance(outcome, UpstreamError)
    assert (outcome.provider_status, outcome.status) == (provider_status, status)
    assert outcome.reason == f"Error from remote service: {reason}"


def test_only_choice_zero_is_the_response() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "B"}, "finish_reason": "length"}]}
    both = {"choices": [{"index": 1, "delta": {"content": "C"}}, {"index": 0, "delta": {"content": "A"}}]}
    chunks, outcome = decode(CHAT, sse(other, both, delta("stop"), "[DONE]"))
    assert chunks == [Chunk("A")]
    assert isinstance(outcome, Ending)
    assert outcome.finish_reason == "stop"


def _call(arguments: str, id: str | None = None, name: str | None = None, **index: int) -> dict[str, Any]:
    return delta(tool_calls=[{**index, "id": id, "function": {"name": name, "arguments": arguments}}])


def test_parallel_calls_stay_apart_when_a_server_gives_index_zero_to_all() -> None:
    data = sse(_call("{}", "a", "f", index=0), _call("{", "b", "g", index=0), _call("}", index=0), "[DONE]")
    _, _, calls = join_chunks(decode(CHAT, data)[0])
    assert [(call["id"], call["arguments"]) for call in calls] == [("a", "{}"), ("b", "{}")]


def test_parallel_calls_stay_apart_when_a_server_gives_no_index() -> None:
    data = sse(_call("{", "a", "f"), _call("}"), _call("[]", "b", "g"), "[DONE]")
    _, _, calls = join_chunks(decode(CHAT, data)[0])
    assert [(call["name"], call["arguments"]) for call in calls] == [("f", "{}"), ("g", "[]")]


def test_an_id_that_is_repeated_in_every_fragment_is_one_call() -> None:
    data = sse(_call("{", "a", "f", index=0), _call("}", "a", "f", index=0), "[DONE]")
    _, _, calls = join_chunks(decode(CHAT, data)[0])
    assert [call["arguments"] for call in calls] == ["{}"]


@pytest.mark.parametrize(("finish", "arguments"), [("stop", "{}"), ("tool_calls", "{}"), ("length", "")])
def test_a_call_without_arguments_has_an_empty_object_unless_it_was_cut_off(finish: str, arguments: str) -> None:
    first, second = _call("", "a", "f", index=0), _call("[]", "b", "g", index=1)
    whole = {"choices": [{**first["choices"][0], "finish_reason": finish}]}
    dashscope = {"output": {"choices": [{"message": first["choices"][0]["delta"], "finish_reason": finish}]}}
    for preset, events in (
        (CHAT, [first, second, delta(finish), "[DONE]"]), (CHAT, [whole]), ("dashscope/generation", [dashscope]),
    ):  # fmt: skip
        _, _, calls = join_chunks(decode(preset, sse(*events))[0])
        assert calls[0] == {"id": "a", "name": "f", "arguments": arguments}


def test_a_refusal_is_text_of_a_kind_of_its_own() -> None:
    chunks, outcome = decode(CHAT, sse(delta(content="Well. ", refusal="I can't"), "[DONE]"))
    assert chunks == [Chunk("Well. I can't", refusal="I can't")]
    assert outcome == Ending("content_filter")


def test_a_first_event_that_is_broken_is_an_error_at_once() -> None:
    assert not isinstance(error_of(CHAT, sse("<html>", delta(content="a"), "[DONE]")), StreamTruncated)


@pytest.mark.parametrize("odd", [5, ["x"], {"a": 1}, True])
def test_odd_types_of_details_do_no_harm(odd: object) -> None:
    payload = {"model": odd, "choices": [{"delta": {"content": "a"}, "finish_reason": odd}],
               "usage": {"prompt_tokens": odd, "completion_tokens_details": odd}}  # fmt: skip
    chunks, outcome = decode(CHAT, sse(payload, "[DONE]"))
    assert chunks == [Chunk("a")]
    assert isinstance(outcome, Ending)
    assert outcome.finish_reason == "stop"
    assert outcome.usage is None or isinstance(outcome.usage.as_dict(), dict)
