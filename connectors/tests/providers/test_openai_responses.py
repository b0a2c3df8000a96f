"""OpenAI Responses: events that one would not expect."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Ending
from tests.providers.recorded_streams import join_chunks
from tests.providers.stream_bodies import decode, error_of, sse

RESPONSES = "openai/v1/responses"


@pytest.mark.parametrize(("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter")])
def test_an_incomplete_response_says_why(reason: str, finish: str) -> None:
    last = {
        "type": "response.incomplete",
        "response": {"status": "incomplete", "incomplete_details": {"reason": reason}},
    }
    _, outcome = decode(RESPONSES, sse(last))
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
def test_a_failed_response_is_an_error_and_not_an_empty_text(last: dict[str, Any]) -> None:
    error = error_of(RESPONSES, sse(last))
    assert (error.provider_status, error.reason) == (500, "Error from remote service: oh")


CALL = {
    "type": "response.output_item.added",
    "output_index": 1,
    "item": {"type": "function_call", "call_id": "c", "name": "f"},
}
ARGUMENTS = {"type": "response.function_call_arguments.done", "output_index": 1, "arguments": '{"a":1}'}
COMPLETED = {"type": "response.completed", "response": {"status": "completed"}}


@pytest.mark.parametrize("fragments", [[], ['{"a"', "", ":1}"]])
def test_arguments_come_once_whether_in_fragments_or_whole(fragments: list[str]) -> None:
    deltas = [
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": text} for text in fragments
    ]
    chunks, outcome = decode(RESPONSES, sse(CALL, *deltas, ARGUMENTS, COMPLETED))
    assert join_chunks(chunks) == ("", "", [{"id": "c", "name": "f", "arguments": '{"a":1}'}])
    assert len(chunks) == 1 + (len(fragments) - 1 if fragments else 1)
    assert isinstance(outcome, Ending)
    assert outcome.finish_reason == "tool_calls"


@pytest.mark.parametrize("kind", ["response.output_text.delta", "response.reasoning_text.delta"])
def test_an_empty_delta_is_no_chunk(kind: str) -> None:
    chunks, outcome = decode(RESPONSES, sse({"type": kind, "delta": ""}, COMPLETED))
    assert chunks == []
    assert isinstance(outcome, Ending)
    assert outcome.usage is None
