"""A provider that speaks OpenAI's and Anthropic's interfaces, and answers by what the last message asks for.

weather   a call of the tool `weather`, as are `patch` and `search` of the tools of an agent
json      a JSON text
limit     429 with Retry-After
long      400, as the conversation is too long
break     a stream that breaks off
anything  "Hello, World!" in three pieces
"""

import json
from typing import Any

from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    SSE_HEAD,
    Act,
    Request,
    Script,
    chunk,
    json_response,
    sse_event,
)

TEXTS = ("Hel", "lo, ", "World!")
CITY = '{"city": "Ulm"}'
PATCH = '*** Begin Patch\n*** Add File: a.txt\n+"Ä"\n*** End Patch\n'
CALLS = {
    "weather": ("weather", CITY),
    "patch": ("apply_patch", json.dumps({"input": PATCH})),
    "search": ("mcp__docs__search", '{"query": "a"}'),
}
TOO_LONG = {
    "error": {
        "message": "Your input exceeds the context window of this model",
        "type": "invalid_request_error",
        "param": "input",
        "code": "context_length_exceeded",
    }
}
_FRAME = {
    "id": "chatcmpl-p",
    "object": "chat.completion.chunk",
    "created": 7,
    "model": "gpt-p",
    "system_fingerprint": "fp",
}
_USAGE = {
    "prompt_tokens": 5,
    "completion_tokens": 3,
    "total_tokens": 8,
    "prompt_tokens_details": {"cached_tokens": 2},
}


def answer(request: Request) -> Script:
    """The script for a request."""
    body = request.json()
    if request.path.endswith("/embeddings"):
        return _embeddings(body)
    asked = _last_text(body)
    if asked == "limit":
        return json_response({"error": {"message": "Slow down", "type": "requests"}}, 429, retry_after="7")
    if asked == "long":
        return json_response(TOO_LONG, 400)
    if request.path.endswith("/messages"):
        events = _anthropic_events(asked)
        return _stream(events, asked) if body.get("stream") else json_response(_anthropic_whole(asked))
    if "prompt" in body:
        return _completions() if body.get("stream") else json_response(_completion("".join(TEXTS), "stop"))
    if not body.get("stream"):
        return json_response(_openai_whole(asked))
    return _stream([*_openai_events(asked), b"data: [DONE]\n\n"], asked)


def _last_text(body: dict[str, Any]) -> str:
    content = body["messages"][-1].get("content") if "messages" in body else body["prompt"]
    last = content[-1] if isinstance(content, list) else content
    return str(last.get("text", "")) if isinstance(last, dict) else str(last)


def _texts(asked: str) -> tuple[str, ...]:
    return ('{"city"', ': "Ulm"}') if asked == "json" else TEXTS


def _stream(events: list[bytes], asked: str) -> Script:
    if asked == "break":
        return [SSE_HEAD, *(chunk(event) for event in events[:3]), Act.CLOSE]
    return [SSE_HEAD, *(chunk(event) for event in events), LAST_CHUNK]


def _openai_events(asked: str) -> list[bytes]:
    def event(delta: Any, finish: str | None = None) -> bytes:
        return sse_event({**_FRAME, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def call(function: Any, **more: Any) -> bytes:
        return event({"tool_calls": [{"index": 0, **more, "function": function}]})

    usage = sse_event({**_FRAME, "choices": [], "usage": _USAGE})
    first = event({"role": "assistant", "content": ""})
    if asked in CALLS:
        name, arguments = CALLS[asked]
        begin = call({"name": name, "arguments": ""}, id="call_p", type="function")
        return [
            first,
            begin,
            call({"arguments": arguments[:5]}),
            call({"arguments": arguments[5:]}),
            event({}, "tool_calls"),
            usage,
        ]
    return [first, *(event({"content": text}) for text in _texts(asked)), event({}, "stop"), usage]


def _completions() -> Script:
    events = [_completion(text) for text in TEXTS]
    last = _completion("", "stop")
    return _stream([*(sse_event(event) for event in (*events, last)), b"data: [DONE]\n\n"], "")


def _completion(text: str, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
    return {"id": "cmpl-p", "object": "text_completion", "created": 7, "model": "t", "choices": [choice]}


def _openai_whole(asked: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(_texts(asked))}
    if asked in CALLS:
        name, arguments = CALLS[asked]
        call = {"id": "call_p", "type": "function", "function": {"name": name, "arguments": arguments}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if asked in CALLS else "stop"}
    return {**_FRAME, "object": "chat.completion", "choices": [choice], "usage": _USAGE}


def _anthropic_events(asked: str) -> list[bytes]:
    message = {**_anthropic_whole(asked), "content": [], "stop_reason": None}
    if asked in CALLS:
        name, arguments = CALLS[asked]
        block: dict[str, Any] = {"type": "tool_use", "id": "toolu_p", "name": name, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in (arguments[:5], arguments[5:])]
    else:
        block = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": text} for text in _texts(asked)]
    reason = "tool_use" if asked in CALLS else "end_turn"
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
    return [sse_event(event, event["type"]) for event in events]


def _anthropic_whole(asked: str) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": "".join(_texts(asked))}
    if asked in CALLS:
        name, arguments = CALLS[asked]
        block = {"type": "tool_use", "id": "toolu_p", "name": name, "input": json.loads(arguments)}
    return {
        "id": "msg_p",
        "type": "message",
        "role": "assistant",
        "model": "claude-p",
        "content": [block],
        "stop_reason": "tool_use" if asked in CALLS else "end_turn",
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 2, "output_tokens": 3},
    }


def _embeddings(body: dict[str, Any]) -> Script:
    """Each text's vector is its length and the number of dimensions asked for."""
    data = [
        {"object": "embedding", "index": place, "embedding": [len(text), body.get("dimensions") or 0.5]}
        for place, text in enumerate(body["input"])
    ]
    return json_response(
        {"object": "list", "data": data, "model": "e", "usage": {"prompt_tokens": 9, "total_tokens": 9}}
    )
