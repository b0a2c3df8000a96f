"""Anthropic messages: events that one would not expect."""

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from tests.providers.stream_bodies import decode, error_of, sse

ANTHROPIC = "anthropic/v1/messages"


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
    _, outcome = decode(ANTHROPIC, data)
    assert isinstance(outcome, Ending)
    assert outcome.usage is not None
    assert outcome.usage.as_dict() == {"input_tokens": 5, "output_tokens": 20, "total_tokens": 25}
    assert outcome.finish_reason == "content_filter"


def test_text_in_the_start_of_a_block_is_not_lost() -> None:
    data = sse(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "He"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "llo"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "message_stop"},
    )
    assert decode(ANTHROPIC, data) == ([Chunk("He"), Chunk("llo")], Ending())


def test_tools_that_anthropic_runs_itself_are_no_tool_calls() -> None:
    tool = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    data = sse(
        {"type": "content_block_start", "index": 0, "content_block": tool},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "message_stop"},
    )
    assert decode(ANTHROPIC, data)[0] == []


@pytest.mark.parametrize("delta", [{"type": "text_delta", "text": ""}, {"type": "thinking_delta", "thinking": ""}])
def test_an_empty_delta_is_no_chunk(delta: dict[str, str]) -> None:
    data = sse({"type": "content_block_delta", "index": 0, "delta": delta}, {"type": "message_stop"})
    assert decode(ANTHROPIC, data) == ([], Ending())


TOOL_START = {
    "type": "content_block_start",
    "index": 0,
    "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {"city": "Ulm"}},
}
BLOCK_STOP = {"type": "content_block_stop", "index": 0}
TOOL_END = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}


def fragment(text: str) -> dict[str, object]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}


@pytest.mark.parametrize(
    ("fragments", "arguments"), [([], '{"city":"Ulm"}'), ([""], '{"city":"Ulm"}'), (['{"a"', ":1}"], '{"a":1}')]
)
def test_an_input_in_the_start_of_a_block_counts_unless_fragments_replace_it(
    fragments: list[str], arguments: str
) -> None:
    chunks, outcome = decode(ANTHROPIC, sse(TOOL_START, *map(fragment, fragments), BLOCK_STOP, TOOL_END))
    assert "".join(call.arguments for chunk in chunks for call in chunk.tool_calls) == arguments
    assert outcome == Ending("tool_calls", "tool_use")


def test_tokens_of_the_cache_are_part_of_the_input() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 1}
    data = sse({"type": "message_start", "message": {"usage": usage}}, {"type": "message_stop"})
    _, outcome = decode(ANTHROPIC, data)
    assert isinstance(outcome, Ending)
    assert outcome.usage is not None
    assert outcome.usage.as_dict() == {
        "input_tokens": 125, "output_tokens": 1, "total_tokens": 126, "cached_tokens": 100,
        "cache_write_tokens": 20,
    }  # fmt: skip


def test_a_signature_is_the_proof_of_the_reasoning_before_it() -> None:
    deltas = [{"type": "thinking_delta", "thinking": "Hm"}, {"type": "signature_delta", "signature": "c2ln"}]
    events = [{"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas]
    chunks, _ = decode(ANTHROPIC, sse(*events, {"type": "message_stop"}))
    assert chunks == [Chunk(reasoning="Hm"), Chunk(signature="c2ln")]


def test_a_whole_block_of_thinking_holds_its_signature() -> None:
    block = {"type": "thinking", "thinking": "Hm", "signature": "c2ln"}
    data = sse({"type": "message_start", "message": {"content": [block]}}, {"type": "message_stop"})
    assert decode(ANTHROPIC, data)[0] == [Chunk(reasoning="Hm", signature="c2ln")]
