"""The tokens of whole responses: generated texts, embeddings, scores, and what says nothing of tokens."""

from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.response_usage import count_response_tokens
from opensearch_ml_stream.connectors.token_spending import TokenCount

OPENAI_CHAT = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
    "usage": {
        "prompt_tokens": 9,
        "completion_tokens": 4,
        "total_tokens": 13,
        "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 2},
    },
}
ANTHROPIC = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "hello"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 9, "output_tokens": 4, "cache_read_input_tokens": 3},
}
GEMINI = {
    "candidates": [{"content": {"parts": [{"text": "hello"}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13},
}
CONVERSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "hello"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13},
}
VECTOR = [0.125] * 50
OUTPUT = {"name": "output", "shape": [1], "datatype": "BYTES", "data": ["Because"]}


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (OPENAI_CHAT, TokenCount(9, 4, 3)),
        ([OPENAI_CHAT], TokenCount(9, 4, 3)),
        (ANTHROPIC, TokenCount(12, 4, 3)),
        (GEMINI, TokenCount(9, 4)),
        (CONVERSE, TokenCount(9, 4)),
        ({"data": [{"embedding": VECTOR}], "usage": {"prompt_tokens": 9, "total_tokens": 9}}, TokenCount(9)),
        ({"data": [{"embedding": VECTOR}], "usage": {"total_tokens": 9}}, TokenCount(9)),
        ({"embedding": VECTOR, "inputTextTokenCount": 9}, TokenCount(9)),
        ({"embeddings": [VECTOR], "prompt_eval_count": 9}, TokenCount(9)),
        ({"embeddings": [VECTOR], "meta": {"billed_units": {"input_tokens": 9.0}}}, TokenCount(9)),
        ({"results": [{"index": 0, "relevance_score": 0.5}], "usage": {"total_tokens": 9}}, TokenCount(9)),
        ({"outputs": [OUTPUT], "parameters": {"usage": {"input_tokens": 9, "output_tokens": 4}}}, TokenCount(9, 4)),
        (
            {"outputs": [OUTPUT], "parameters": {"usage": {"prompt_tokens": 9, "total_tokens": 9, "cached_tokens": 3}}},
            TokenCount(9, 0, 3),
        ),
    ],
)
def test_the_providers_own_counts_are_read(response: Any, expected: TokenCount) -> None:
    counted = count_response_tokens(orjson.dumps(response), 100)
    assert (counted.input, counted.output, counted.cached) == (expected.input, expected.output, expected.cached)


def test_counts_of_a_text_are_no_estimate() -> None:
    assert not count_response_tokens(orjson.dumps(OPENAI_CHAT), 100).is_estimated


@pytest.mark.parametrize(
    ("response", "output"),
    [
        ({"choices": [{"message": {"content": "12345678"}, "finish_reason": "stop"}]}, 2),
        ({"choices": [{"message": {"content": "海は深い"}, "finish_reason": "stop"}]}, 3),
        ({"unknown": "12345678"}, 6),
        ({"data": [{"embedding": VECTOR}]}, 0),
        ([VECTOR, VECTOR], 0),
        (7, 1),
        ({"usage": {"prompt_tokens": -1, "completion_tokens": "many"}}, 15),
    ],
)
def test_what_says_nothing_of_tokens_is_estimated_and_vectors_are_none(response: Any, output: int) -> None:
    counted = count_response_tokens(orjson.dumps(response), 100)
    assert counted == TokenCount(100, output, is_estimated=True)


def test_a_response_that_is_no_json_is_estimated_by_its_length() -> None:
    assert count_response_tokens(b"<html>gateway</html>", 100) == TokenCount(100, 5, is_estimated=True)
