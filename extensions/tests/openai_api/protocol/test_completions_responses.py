"""Whole responses in OpenAI's form."""

import json

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.extensions.openai_api.protocol.completions_response import (
    chat_response,
    completions_response,
)
from opensearch_ml_stream.extensions.openai_api.protocol.envelope import Envelope

ENVELOPE = Envelope("chatcmpl-1f", 1700000000, "m")


def test_an_answer_has_its_text_reason_and_usage() -> None:
    assert json.loads(chat_response(ENVELOPE, Chunk("Rain."), Ending("length", usage=Usage(3, 4)), {})) == {
        "id": "chatcmpl-1f",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Rain.", "refusal": None},
                "logprobs": None,
                "finish_reason": "length",
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    }


def test_a_refusal_in_words_is_a_member_of_its_own_in_an_answer_that_is_whole() -> None:
    body = json.loads(chat_response(ENVELOPE, Chunk("No.", refusal="No."), Ending("content_filter", "stop"), {}))
    choice = body["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": None, "refusal": "No."}
    assert choice["finish_reason"] == "stop"


def test_fragments_of_calls_are_put_together() -> None:
    calls = (ToolCall(0, "a", "weather"), ToolCall(1, None, "time"), ToolCall(0, arguments="{}"))
    body = json.loads(chat_response(ENVELOPE, Chunk("", "Hm", calls, signature="s"), Ending("tool_calls"), {}))
    assert body["choices"][0]["message"] == {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "reasoning_content": "Hm",
        "reasoning_signature": "s",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
            {"id": "call_1f_1", "type": "function", "function": {"name": "time", "arguments": ""}},
        ],
    }
    assert "usage" not in body


def test_a_client_of_functions_gets_a_function_call() -> None:
    chunk = Chunk(tool_calls=(ToolCall(0, "a", "weather", "{}"),))
    choice = json.loads(chat_response(ENVELOPE, chunk, Ending("tool_calls"), {}, calls_function=True))["choices"][0]
    assert choice["message"]["function_call"] == {"name": "weather", "arguments": "{}"}
    assert choice["finish_reason"] == "function_call"


def test_completions_have_their_text_in_the_choice() -> None:
    body = json.loads(completions_response(ENVELOPE, Chunk("a"), Ending(), {}))
    assert body["object"] == "text_completion"
    assert body["choices"] == [{"text": "a", "index": 0, "logprobs": None, "finish_reason": "stop"}]
