"""Gemini: events that one would not expect."""

import json
from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from tests.providers.stream_bodies import decode, error_of, sse

GEMINI = "gemini/v1beta/generatecontent"


def test_a_blocked_prompt_ends_the_stream() -> None:
    _, outcome = decode(
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


def test_a_candidate_without_parts_is_no_chunk() -> None:
    candidates: list[dict[str, Any]] = [
        {"candidates": [{"content": {"role": "model"}}]},
        {"candidates": [{"content": {"parts": [{"text": ""}]}}]},
        {"candidates": [{"finishReason": "STOP"}]},
    ]
    assert decode(GEMINI, sse(*candidates)) == ([], Ending("stop", "STOP"))


def test_only_the_first_candidate_is_the_response() -> None:
    other = {"candidates": [{"index": 1, "content": {"parts": [{"text": "B"}]}, "finishReason": "MAX_TOKENS"}]}
    first = {"candidates": [{"index": 0, "content": {"parts": [{"text": "A"}]}, "finishReason": "STOP"}]}
    assert decode(GEMINI, sse(other, first)) == ([Chunk("A")], Ending("stop", "STOP"))
