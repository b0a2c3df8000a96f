"""A whole response to a stream request."""

from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.unstreamed_response import (
    decode_whole_response,
    non_stream_response,
    read_whole_response,
)

WEATHER = {"function": {"name": "weather", "arguments": '{"city":"Ulm"}'}}


def joined(response: object) -> tuple[str, str, list[tuple[Any, ...]], Ending]:
    """Text, reasoning, tool calls put together, and ending."""
    found = read_whole_response(orjson.dumps(response))
    assert found is not None
    chunk, ending = found
    calls: dict[int, list[Any]] = {}
    for call in chunk.tool_calls:
        known = calls.setdefault(call.index, [None, None, ""])
        known[:] = [known[0] or call.id, known[1] or call.name, known[2] + call.arguments]
    return chunk.text, chunk.reasoning, [tuple(call) for call in calls.values()], ending


CALL = [("c1", "weather", '{"city":"Ulm"}')]
USAGE = Usage(2, 3, 5)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (
            {"model": "m", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": "Hi", "reasoning_content": "Hm",
                "tool_calls": [{"id": "c1", **WEATHER}],
            }}], "usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}},
            ("Hi", "Hm", CALL, Ending("tool_calls", "tool_calls", USAGE, "m")),
        ),
        ({"choices": [{"message": {"content": "Hi"}}]}, ("Hi", "", [], Ending())),
        (
            {"text": "Hi", "generation_id": "g", "finish_reason": "MAX_TOKENS", "chat_history": [],
             "tool_calls": [{"name": "weather", "parameters": {"city": "Ulm"}}]},
            ("Hi", "", [(None, *CALL[0][1:])], Ending("length", "MAX_TOKENS")),
        ),
        (
            {"id": "i", "finish_reason": "COMPLETE", "message": {"role": "assistant", "content": "Hi"}},
            ("Hi", "", [], Ending("stop", "COMPLETE")),
        ),
        (
            {"choices": [{"text": "Hi", "finish_reason": "length"}]},
            ("Hi", "", [], Ending("length", "length")),
        ),
        (
            {"object": "response", "status": "completed", "model": "m", "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]},
                {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]},
                {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Ulm"}'},
            ]},
            ("Hi", "Hm", CALL, Ending("tool_calls", "completed", None, "m")),
        ),
        (
            {"type": "message", "model": "m", "stop_reason": "tool_use", "content": [
                {"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Hi"},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Ulm"}},
            ], "usage": {"input_tokens": 2, "output_tokens": 3}},
            ("Hi", "Hm", CALL, Ending("tool_calls", "tool_use", Usage(2, 3), "m")),
        ),
        (
            {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}], "modelVersion": "m"},
            ("Hi", "", [], Ending("stop", "STOP", None, "m")),
        ),
        (
            {"output": {"message": {"content": [
                {"reasoningContent": {"reasoningText": {"text": "Hm"}}}, {"text": "Hi"},
                {"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city": "Ulm"}}},
            ]}}, "stopReason": "end_turn", "usage": {"inputTokens": 2, "outputTokens": 3, "totalTokens": 5}},
            ("Hi", "Hm", CALL, Ending("tool_calls", "end_turn", Usage(2, 3))),
        ),
        (
            {"id": "x", "finish_reason": "TOOL_CALL", "message": {
                "tool_plan": "Hm", "content": [{"type": "text", "text": "Hi"}], "tool_calls": [{"id": "c1", **WEATHER}],
            }, "usage": {"tokens": {"input_tokens": 2, "output_tokens": 3}}},
            ("Hi", "Hm", CALL, Ending("tool_calls", "TOOL_CALL", Usage(2, 3))),
        ),
        (
            [{"generated_text": "Hi", "details": {"finish_reason": "length", "generated_tokens": 3}}],
            ("Hi", "", [], Ending("length", "length", Usage(None, 3))),
        ),
        (
            {"model": "m", "message": {"role": "assistant", "content": "Hi"}, "done": True, "done_reason": "stop"},
            ("Hi", "", [], Ending("stop", "stop", None, "m")),
        ),
        (
            {"model_name": "m", "outputs": [{"name": "output", "datatype": "BYTES", "shape": [1], "data": ["Hi"]}]},
            ("Hi", "", [], Ending("stop", None, None, "m")),
        ),
        (
            {"object": "interaction", "status": "requires_action", "model": "m", "steps": [
                {"type": "thought", "summary": [{"type": "text", "text": "Hm"}]},
                {"type": "model_output", "content": [{"type": "text", "text": "Hi"}]},
                {"type": "function_call", "id": "c1", "name": "weather", "arguments": {"city": "Ulm"}},
            ], "usage": {"total_input_tokens": 2, "total_output_tokens": 3, "total_tokens": 5}},
            ("Hi", "Hm", CALL, Ending("tool_calls", "requires_action", USAGE, "m")),
        ),
        (
            {"object": "interaction", "status": "completed", "outputs": [{"type": "text", "text": "Hi"}]},
            ("Hi", "", [], Ending("stop", "completed")),
        ),
        (
            {"output": {"choices": [{"finish_reason": "tool_calls", "message": {
                "content": "Hi", "reasoning_content": "Hm", "tool_calls": [{"id": "c1", "index": 0, **WEATHER}],
            }}]}, "usage": {"input_tokens": 2, "output_tokens": 3, "total_tokens": 5}, "request_id": "r"},
            ("Hi", "Hm", CALL, Ending("tool_calls", "tool_calls", USAGE)),
        ),
        (
            {"output": {"text": "Hi", "finish_reason": "stop"}, "request_id": "r"},
            ("Hi", "", [], Ending("stop", "stop")),
        ),
        (
            {"model_id": "m", "results": [{
                "generated_text": "Hi", "generated_token_count": 3, "input_token_count": 2, "stop_reason": "max_tokens",
            }]},
            ("Hi", "", [], Ending("length", "max_tokens", Usage(2, 3), "m")),
        ),
        (
            {"success": True, "errors": [], "messages": [], "result": {
                "response": "Hi", "tool_calls": [{"name": "weather", "arguments": {"city": "Ulm"}}],
                "usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5},
            }},
            ("Hi", "", [(None, "weather", '{"city":"Ulm"}')], Ending("tool_calls", "stop", USAGE)),
        ),
        (
            {"success": True, "errors": [], "result": {
                "choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}},
            ("Hi", "", [], Ending("stop", "stop")),
        ),
        (
            {"choices": [{"finish_reason": "stop", "message": {"content": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]},
                {"type": "text", "text": "Hi"},
            ]}}]},
            ("Hi", "Hm", [], Ending("stop", "stop")),
        ),
    ],
    ids=[
        "chat", "no reason", "cohere v1", "cohere's text",
        "completions", "responses", "anthropic", "gemini", "converse", "cohere", "tgi", "ollama",
        "v2", "interactions", "interactions without steps", "dashscope", "dashscope text", "watsonx", "workers ai",
        "workers ai in chat's form", "databricks",
    ],
)  # fmt: skip
def test_a_whole_response_is_one_chunk_with_its_ending(response: object, expected: object) -> None:
    assert joined(response) == expected


def test_a_shell_call_in_a_whole_response_is_a_tool_call() -> None:
    call = {"type": "local_shell_call", "call_id": "c1", "action": {"type": "exec"}}
    found = read_whole_response(orjson.dumps({"object": "response", "status": "completed", "output": [call]}))
    assert found == (
        Chunk(tool_calls=(ToolCall(0, "c1", "local_shell_call", '{"action":{"type":"exec"}}'),)),
        Ending("tool_calls", "completed"),
    )


@pytest.mark.parametrize(
    "body",
    [
        b"", b"7", b"[]", b"{}", b"[{}, {}]", b"{", b'{"hits": {}}',
        b'{"choices": 5}', b'{"choices": [5]}', b'{"output": [5], "status": "completed"}',
        b'{"error": {"message": "no"}}', b'{"choices": [{"message": {"content": null}, "finish_reason": "stop"}]}',
        b'{"type": "message", "content": 5}', b"[" * 5_000,
    ],
)  # fmt: skip
def test_what_is_no_whole_response_is_none(body: bytes) -> None:
    assert read_whole_response(body) is None


@pytest.mark.parametrize(("signatures", "signature"), [([], ""), (["a"], "a"), (["a", "b"], "")])
def test_a_signature_is_given_where_it_is_that_of_all_the_reasoning(signatures: list[str], signature: str) -> None:
    content = [{"type": "thinking", "thinking": "Hm", "signature": each} for each in signatures]
    message = {"type": "message", "content": [*content, {"type": "text", "text": "Hi"}], "stop_reason": "end_turn"}
    found = read_whole_response(orjson.dumps(message))
    assert found is not None
    assert found[0].signature == signature


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"candidates": [{"content": {"parts": []}, "finishReason": "MAX_TOKENS"}]}, "length"),
        ({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}, "error"),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "content_filter"),
    ],
)
def test_a_whole_response_of_gemini_may_have_nothing_but_an_end(response: dict[str, Any], reason: str) -> None:
    found = decode_whole_response(response, may_be_empty=True)
    assert found is not None
    assert (found[0], found[1].finish_reason) == (Chunk(), reason)


@pytest.mark.parametrize(
    ("body", "message", "provider_status"),
    [
        (b'{"error": {"message": "model is loading", "type": "server_error"}}', "model is loading", 500),
        (b'{"error": "no such model"}', "no such model", None),
        (b'{"object": "error", "message": "too long", "code": 400}', "too long", 400),
        (b'{"detail": "too long", "status": 400}', "too long", 400),
        (b'{"detail": "no such path"}', "no such path", None),
        (b'{"code": "InternalError", "message": "broke"}', "broke", 500),
        (b'[{"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}]\n', "quota", 429),
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", ""])
def test_an_error_under_a_good_status_keeps_the_providers_words(
    body: bytes, message: str, provider_status: int | None, kind: str
) -> None:
    error = non_stream_response(body, kind)
    assert error is not None
    assert error.reason == f"Error from remote service: {message}"
    assert error.provider_status == provider_status


def test_an_error_that_is_too_deep_is_one_all_the_same() -> None:
    error = non_stream_response(b'{"error":{"message":' + b"[" * 900 + b"]" * 900 + b"}}", "")
    assert error is not None
    assert error.reason == "Error from remote service: (nested too deeply to be shown)"


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Text/HTML"])
def test_a_whole_response_is_named_by_its_kind_and_not_shown(kind: str) -> None:
    error = non_stream_response(b'{"choices": [{"message": {"content": "private"}}], "error": null}', kind)
    assert error is not None
    assert f"responded with {kind.partition(';')[0].lower()} instead of the stream" in error.reason
    assert "private" not in error.reason


@pytest.mark.parametrize("body", [b"", b"data: {}\n\n", b'{"error"', b"[]", b"[1]", b"7"])
def test_what_may_have_been_the_stream_is_for_the_decoder(body: bytes) -> None:
    assert non_stream_response(body, "text/event-stream") is None
