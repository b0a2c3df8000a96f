"""Gemini Interactions: what its recordings do not show."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall
from opensearch_ml_stream.connectors.decoding.decoder import FastPathDecoder
from opensearch_ml_stream.connectors.errors import StreamTruncated
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from tests.providers.recorded_streams import join_chunks, tool
from tests.providers.stream_bodies import decode, ending_of, error_of, sse

PRESET = "gemini/v1beta/interactions"


def text(value: str) -> dict[str, Any]:
    return {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": value}}


def completed(status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"event_type": "interaction.completed", "interaction": {"status": status, **fields}}


@pytest.mark.parametrize(
    ("status", "reason"),
    [("completed", "stop"), ("incomplete", "length"), ("failed", "error"), ("cancelled", "error")],
)
def test_the_status_is_the_finish_reason(status: str, reason: str) -> None:
    assert ending_of(PRESET, sse(text("a"), completed(status))) == Ending(reason, status)


def test_a_status_update_that_is_an_end_makes_the_end_of_the_body_a_good_end() -> None:
    update = {"event_type": "interaction.status_update", "interaction_id": "v1", "status": "completed"}
    assert ending_of(PRESET, sse(text("a"), update)) == Ending(native_finish_reason="completed")
    assert ending_of(PRESET, sse(text("a"), update, "[DONE]")) == Ending(native_finish_reason="completed")


@pytest.mark.parametrize("end", [(), ("[DONE]",), ({**text(""), "event_type": "step.stop"},)])
def test_a_stream_without_its_status_is_truncated(end: tuple[Any, ...]) -> None:
    assert isinstance(decode(PRESET, sse(text("a"), *end))[1], StreamTruncated)


def test_arguments_that_come_whole_with_their_step_are_not_lost() -> None:
    step = {"type": "function_call", "id": "1", "name": "f", "arguments": {"city": "Ulm"}}
    events = [
        {"event_type": "step.start", "index": 0, "step": step},
        {"event_type": "step.stop", "index": 0},
        completed("requires_action"),
    ]
    chunks, outcome = decode(PRESET, sse(*events))
    assert join_chunks(chunks)[2] == [tool("1", "f", '{"city":"Ulm"}')]
    assert isinstance(outcome, Ending) and outcome.finish_reason == "tool_calls"


def test_fragments_by_their_older_name_count() -> None:
    step = {"type": "function_call", "id": "1", "name": "f"}
    delta = {"type": "arguments_delta", "partial_arguments": '{"a":1}'}
    events = [
        {"event_type": "step.start", "index": 3, "step": step},
        {"event_type": "step.delta", "index": 3, "delta": delta},
        {"event_type": "step.stop", "index": 3},
        completed(),
    ]
    chunks, outcome = decode(PRESET, sse(*events))
    assert chunks == [Chunk(tool_calls=(ToolCall(0, "1", "f"),)), Chunk(tool_calls=(ToolCall(0, arguments='{"a":1}'),))]
    assert isinstance(outcome, Ending) and outcome.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("code", "status"), [("gateway_timeout", 504), ("RESOURCE_EXHAUSTED", 429), (400, 400), ("new", None), (None, None)]
)
def test_an_error_event_has_its_status(code: str | int | None, status: int | None) -> None:
    error = error_of(PRESET, sse(text("a"), {"event_type": "error", "error": {"message": "no luck", "code": code}}))
    assert (error.reason, error.provider_status) == ("Error from remote service: no luck", status)


def test_repeated_texts_take_the_fast_path() -> None:
    decoder = SHIPPED.presets[PRESET].decoder()
    assert isinstance(decoder, FastPathDecoder)
    assert decoder.feed(sse(text("a"))) == [Chunk("a")]
    assert decoder.feed(sse(text("b"), text("c"))) == b"b\0c"


def test_too_many_open_calls_are_not_kept() -> None:
    starts = [
        {"event_type": "step.start", "index": index, "step": {"type": "function_call", "name": "f"}}
        for index in range(30)
    ]
    assert "not of the form" in error_of(PRESET, sse(*starts)).reason
