"""A body of each client dialect with everything in it that the dialect has a place for, once."""

from typing import Any

from opensearch_ml_stream.connectors.conversation.dialect import (
    ANTHROPIC,
    OPENAI_CHAT,
    OPENAI_COMPLETIONS,
    OPENAI_RESPONSES,
)

_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
_CACHE = {"cache_control": {"type": "ephemeral"}}
_PNG = "data:image/png;base64,aW1n"

_CHAT: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "No jokes.", **_CACHE}]},
        {
            "role": "user",
            "name": "ann",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": _PNG, "detail": "low"}, **_CACHE},
                {"type": "input_audio", "input_audio": {"data": "c25k", "format": "wav"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,cGRm"}},
                {"type": "file", "file": {"file_id": "file-1"}},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "I look."}, {"type": "refusal", "refusal": "No."}],
            "reasoning_content": "Hm",
            "reasoning_signature": "c2ln",
            "audio": {"id": "audio_1"},
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Ulm"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "Rain"}]},
        {"role": "assistant", "content": None, "function_call": {"name": "now", "arguments": "{}"}},
        {"role": "function", "name": "now", "content": "noon"},
        {"role": "user", "content": "And?"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {"name": "weather", "description": "Tells it.", "parameters": _SCHEMA, "strict": True},
        }
    ],
    "functions": [{"name": "now", "parameters": _SCHEMA}],
    "tool_choice": {"type": "function", "function": {"name": "weather"}},
    "parallel_tool_calls": False,
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "place", "description": "A place.", "schema": _SCHEMA, "strict": True},
    },
    "temperature": 0.5, "top_p": 0.9, "top_k": 4, "min_p": 0.1, "max_completion_tokens": 99, "stop": ["END"],
    "seed": 7, "presence_penalty": 0.1, "frequency_penalty": 0.2, "logit_bias": {"5": 1}, "logprobs": True,
    "top_logprobs": 2, "n": 2, "reasoning_effort": "low", "verbosity": "low", "user": "u1", "metadata": {"k": "v"},
    "service_tier": "flex", "modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"},
}  # fmt: skip

_RESPONSES: dict[str, Any] = {
    "instructions": "Be brief.",
    "input": [
        {"role": "developer", "content": "No jokes."},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": _PNG, "detail": "low"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,cGRm"},
                {"type": "input_file", "file_url": "https://example.com/a.pdf"},
                {"type": "input_file", "file_id": "file-1"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Hm"}],
            "encrypted_content": "signature:c2ln",
        },
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": '{"city":"Ulm"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "Rain"}]},
        {"role": "user", "content": "And?"},
    ],
    "tools": [
        {"type": "function", "name": "weather", "description": "Tells it.", "parameters": _SCHEMA, "strict": True}
    ],
    "tool_choice": {"type": "function", "name": "weather"},
    "parallel_tool_calls": False,
    "text": {
        "format": {
            "type": "json_schema", "name": "place", "description": "A place.", "schema": _SCHEMA, "strict": True,
        },
        "verbosity": "low",
    },
    "reasoning": {"effort": "low", "summary": "auto"},
    "include": ["reasoning.encrypted_content"],
    "temperature": 0.5, "top_p": 0.9, "max_output_tokens": 99, "user": "u1", "metadata": {"k": "v"},
    "service_tier": "flex", "store": False,
}  # fmt: skip

_MESSAGES: dict[str, Any] = {
    "system": [{"type": "text", "text": "Be brief.", **_CACHE}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?", **_CACHE},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aW1n"}},
                {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
                {
                    "type": "document",
                    "title": "plan",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": "cGRm"},
                },
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a note"}},
                {
                    "type": "document",
                    "source": {"type": "content", "content": [{"type": "text", "text": "another note"}]},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "ZW5j"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Ulm"}, **_CACHE},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "is_error": True,
                    "content": [
                        {"type": "text", "text": "Rain"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "bWFw"}},
                    ],
                    **_CACHE,
                },
                {"type": "text", "text": "And?"},
            ],
        },
    ],
    "tools": [{"name": "weather", "description": "Tells it.", "input_schema": _SCHEMA, "strict": True, **_CACHE}],
    "tool_choice": {"type": "tool", "name": "weather", "disable_parallel_tool_use": True},
    "thinking": {"type": "enabled", "budget_tokens": 1024, "display": "summarized"},
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": _SCHEMA}},
    "max_tokens": 2048, "temperature": 0.5, "top_p": 0.9, "top_k": 4, "stop_sequences": ["END"],
    "metadata": {"user_id": "u1"}, "service_tier": "standard_only",
}  # fmt: skip

_COMPLETIONS: dict[str, Any] = {
    "prompt": "Once", "max_tokens": 99, "temperature": 0.5, "top_p": 0.9, "top_k": 4, "min_p": 0.1, "stop": "END",
    "seed": 7, "presence_penalty": 0.1, "frequency_penalty": 0.2, "logit_bias": {"5": 1}, "logprobs": 2, "n": 2,
    "user": "u1", "metadata": {"k": "v"}, "service_tier": "flex",
}  # fmt: skip

RICH_BODIES = {
    OPENAI_CHAT: _CHAT,
    OPENAI_RESPONSES: _RESPONSES,
    ANTHROPIC: _MESSAGES,
    OPENAI_COMPLETIONS: _COMPLETIONS,
}
"""By the client's dialect."""
