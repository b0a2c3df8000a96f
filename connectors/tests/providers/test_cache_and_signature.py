"""Tokens that were written to a cache of prompts, which are part of the input, and signatures of reasoning."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from tests.providers.eventstream_frames import event, invoke_chunk
from tests.providers.stream_bodies import decode, delta, sse

COUNTS = {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 1}
CONVERSE = {"inputTokens": 5, "cacheReadInputTokens": 100, "cacheWriteInputTokens": 20, "outputTokens": 1}
METRICS = {
    "inputTokenCount": 5, "cacheReadInputTokenCount": 100, "cacheWriteInputTokenCount": 20, "outputTokenCount": 1,
}  # fmt: skip
TITAN = {"outputText": "a", "completionReason": "FINISH", "amazon-bedrock-invocationMetrics": METRICS}
DETAILS = {"cached_tokens": 100, "cache_write_tokens": 20}
ALIBABA = {"cached_tokens": 100, "cache_creation_input_tokens": 20}
RESPONSE = {"usage": {"input_tokens": 125, "output_tokens": 1, "input_tokens_details": DETAILS}}


def chat(details: dict[str, int]) -> bytes:
    usage = {"prompt_tokens": 125, "completion_tokens": 1, "prompt_tokens_details": details}
    return sse(delta("stop"), {"choices": [], "usage": usage}, "[DONE]")


@pytest.mark.parametrize(
    ("preset", "body"),
    [
        (
            "anthropic/v1/messages",
            sse({"type": "message_start", "message": {"usage": COUNTS}}, {"type": "message_stop"}),
        ),
        ("bedrock/converse", event("messageStop", {"stopReason": "stop"}) + event("metadata", {"usage": CONVERSE})),
        ("bedrock/invoke", invoke_chunk(TITAN)),
        ("openai/v1/chat/completions", chat(DETAILS)),
        ("openai/v1/chat/completions", chat(ALIBABA)),
        ("openai/v1/responses", sse({"type": "response.completed", "response": RESPONSE})),
    ],
)
def test_tokens_written_to_a_cache_are_counted_and_are_part_of_the_input(preset: str, body: bytes) -> None:
    _, outcome = decode(preset, body)
    assert isinstance(outcome, Ending)
    assert outcome.usage == Usage(125, 1, cached_tokens=100, cache_write_tokens=20)


def test_converse_gives_the_signature_of_reasoning_after_it() -> None:
    deltas: list[Any] = [{"text": "Hm"}, {"signature": "c2ln"}]
    events = [event("contentBlockDelta", {"delta": {"reasoningContent": each}}) for each in deltas]
    body = b"".join([*events, event("messageStop", {"stopReason": "end_turn"})])
    assert decode("bedrock/converse", body)[0] == [Chunk(reasoning="Hm"), Chunk(signature="c2ln")]
