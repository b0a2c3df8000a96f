"""Cohere chat, v1 and v2: events that one would not expect."""

from typing import Any

from opensearch_ml_stream.connectors.chunks import Ending, Usage
from tests.providers.recorded_streams import join_chunks
from tests.providers.stream_bodies import decode, error_of, ndjson, sse


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
    chunks, outcome = decode("cohere/v1/chat", data)
    assert join_chunks(chunks) == ("", "I will look.", [{"id": None, "name": "f", "arguments": '{"a":1}'}])
    assert isinstance(outcome, Ending)
    assert outcome.finish_reason == "tool_calls"


def test_whole_tool_calls_of_cohere_v1_come_where_no_fragments_did() -> None:
    calls = [{"name": "f", "parameters": {"a": 1}}, {"name": "g"}]
    data = ndjson(
        {"event_type": "tool-calls-chunk"},
        {"event_type": "tool-calls-generation", "tool_calls": calls},
        {"event_type": "text-generation", "text": ""},
        {"event_type": "stream-end", "finish_reason": "COMPLETE", "response": {"tool_calls": calls}},
    )
    chunks, outcome = decode("cohere/v1/chat", data)
    assert len(chunks) == 1
    assert join_chunks(chunks)[2] == [
        {"id": None, "name": "f", "arguments": '{"a":1}'},
        {"id": None, "name": "g", "arguments": ""},
    ]
    assert isinstance(outcome, Ending)
    assert (outcome.finish_reason, outcome.usage) == ("tool_calls", None)


def test_an_error_of_cohere_in_the_stream_is_the_outcome() -> None:
    v2: list[dict[str, Any]] = [
        {"type": "content-delta", "delta": {"message": {"content": {"text": "a"}}}},
        {"type": "error", "message": "x"},
    ]
    assert error_of("cohere/v2/chat", sse(*v2)).reason == "Error from remote service: x"
    assert error_of("cohere/v2/chat", sse({"type": "error", "error": "y"})).reason == "Error from remote service: y"
    assert error_of("cohere/v1/chat", ndjson({"message": "invalid"})).reason == "Error from remote service: invalid"


def test_counts_of_cohere_may_be_written_as_fractions_but_not_as_negative_ones() -> None:
    usage = {"tokens": {"input_tokens": -3.0, "output_tokens": 12.0}}
    data = sse({"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": usage}})
    assert decode("cohere/v2/chat", data)[1] == Ending("stop", "COMPLETE", Usage(None, 12))


def test_empty_deltas_of_cohere_v2_are_no_chunks() -> None:
    call = {"function": {"arguments": ""}}
    data = sse(
        {"type": "message-start", "id": "1"},
        {"type": "content-delta", "delta": {"message": {"content": {"text": ""}}}},
        {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": ""}}},
        {"type": "tool-call-delta", "index": 0, "delta": {"message": {"tool_calls": call}}},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
    )
    assert decode("cohere/v2/chat", data) == ([], Ending("stop", "COMPLETE"))
