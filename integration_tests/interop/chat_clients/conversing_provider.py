"""A provider that converses, in the dialect of the path that is called, streamed or whole.

It calls the first tool that it is offered, says what a tool returned, answers in JSON where the request has a schema,
and else says "Forty-two" in three pieces.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from integration_tests.support.fake_provider import Request, Script, chunked_stream, json_response, sse_event

from tests.providers.eventstream_frames import event

QUESTION = "What is the meaning of life?"
WORDS = ["For", "ty", "-two"]
WEATHER_TOOL, CITY, WEATHER = "get_weather", {"city": "Oslo"}, "12 degrees"
COUNTRY = {"name": "Norway", "capital": "Oslo"}
INPUT_TOKENS, OUTPUT_TOKENS = 5, 3


@dataclass(frozen=True, slots=True)
class Answer:
    """Pieces of a text, or a call of the tool `name`."""

    pieces: tuple[str, ...] = ()
    name: str = ""
    arguments: str = ""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class Spoken:
    """How a dialect offers tools, and how an answer is said in it."""

    tools: Callable[[Mapping[str, Any]], list[str]]
    whole: Callable[[Answer], Mapping[str, Any]]
    stream: Callable[[Answer], Iterator[bytes]]
    content_type: str = "text/event-stream"


def converse(request: Request) -> Script:
    """The script of a request, for FakeProvider. One that no dialect has is a 404."""
    for part, (spoken, streams) in _PATHS.items():
        if part in request.path:
            body = request.json()
            answer = _answer(request.body.decode(), spoken.tools(body))
            if body.get("stream") if streams is None else streams:
                return chunked_stream(spoken.stream(answer), content_type=spoken.content_type)
            return json_response(spoken.whole(answer))
    return json_response({"error": {"message": f"nothing is at {request.path}"}}, 404)


def _answer(body: str, tools: list[str]) -> Answer:
    if WEATHER in body:
        return Answer(("It is ", f"{WEATHER}."))
    if tools:
        return Answer(name=tools[0], arguments=json.dumps(CITY if tools[0] == WEATHER_TOOL else COUNTRY))
    if "capital" in body:
        return Answer((json.dumps(COUNTRY),))
    return Answer(tuple(WORDS))


def _function_names(body: Mapping[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools") or ()]


def _names(body: Mapping[str, Any]) -> list[str]:
    return [tool["name"] for tool in body.get("tools") or ()]


# OpenAI's chat completions.

_OPENAI_USAGE = {
    "prompt_tokens": INPUT_TOKENS,
    "completion_tokens": OUTPUT_TOKENS,
    "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
}


def _openai_call(answer: Answer) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": answer.name, "arguments": answer.arguments}}


def _openai_whole(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.name:
        message["tool_calls"] = [_openai_call(answer)]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if answer.name else "stop"}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-fake"}
    return {**head, "choices": [choice], "usage": _OPENAI_USAGE}


def _openai_stream(answer: Answer) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return sse_event({**head, "choices": [choice]})

    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-fake"}
    yield chunk({"role": "assistant", "content": ""})
    for piece in answer.pieces:
        yield chunk({"content": piece})
    if answer.name:
        yield chunk({"tool_calls": [{"index": 0, **_openai_call(Answer(name=answer.name))}]})
        for part in _halves(answer.arguments):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
    yield chunk({}, "tool_calls" if answer.name else "stop")
    yield sse_event({**head, "choices": [], "usage": _OPENAI_USAGE})
    yield b"data: [DONE]\n\n"


# OpenAI's responses.


def _responses_whole(answer: Answer) -> dict[str, Any]:
    usage = {
        "input_tokens": INPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-fake", "status": "completed"}
    return {**head, "output": [_responses_item(answer)], "usage": usage, "tools": [], "error": None}


def _responses_item(answer: Answer) -> dict[str, Any]:
    if answer.name:
        called = {"call_id": "call_1", "name": answer.name, "arguments": answer.arguments}
        return {"type": "function_call", "id": "fc_1", "status": "completed", **called}
    content = [{"type": "output_text", "text": answer.text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


def _responses_stream(answer: Answer) -> Iterator[bytes]:
    whole = _responses_whole(answer)
    item = _responses_item(answer)
    at = {"item_id": item["id"], "output_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}}
    ]
    if answer.name:
        started = {**item, "arguments": "", "status": "in_progress"}
        delta = "response.function_call_arguments.delta"
        events.append({"type": "response.output_item.added", "output_index": 0, "item": started})
        events += [{"type": delta, **at, "delta": part} for part in _halves(answer.arguments)]
        events.append({"type": "response.function_call_arguments.done", **at, "arguments": answer.arguments})
    else:
        part = item["content"][0]
        started = {**item, "content": [], "status": "in_progress"}
        events.append({"type": "response.output_item.added", "output_index": 0, "item": started})
        events.append({"type": "response.content_part.added", **at, "content_index": 0, "part": {**part, "text": ""}})
        events += [
            {"type": "response.output_text.delta", **at, "content_index": 0, "delta": piece, "logprobs": []}
            for piece in answer.pieces
        ]
        events.append({"type": "response.output_text.done", **at, "content_index": 0, "text": answer.text})
        events.append({"type": "response.content_part.done", **at, "content_index": 0, "part": part})
    events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    events.append({"type": "response.completed", "response": whole})
    for number, one in enumerate(events):
        yield sse_event({**one, "sequence_number": number}, one["type"])


# Anthropic's messages.


def _anthropic_head(answer: Answer) -> dict[str, Any]:
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-fake", "stop_sequence": None}


def _anthropic_whole(answer: Answer) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": answer.text}
    if answer.name:
        block = {"type": "tool_use", "id": "toolu_1", "name": answer.name, "input": json.loads(answer.arguments)}
    usage = {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}
    stop = "tool_use" if answer.name else "end_turn"
    return {**_anthropic_head(answer), "content": [block], "stop_reason": stop, "usage": usage}


def _anthropic_stream(answer: Answer) -> Iterator[bytes]:
    if answer.name:
        block: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": answer.name, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in _halves(answer.arguments)]
    else:
        block = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in answer.pieces]
    usage = {"input_tokens": INPUT_TOKENS, "output_tokens": 1}
    message = {**_anthropic_head(answer), "content": [], "stop_reason": None, "usage": usage}
    ended = {"stop_reason": "tool_use" if answer.name else "end_turn", "stop_sequence": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": {**usage, "output_tokens": OUTPUT_TOKENS}},
        {"type": "message_stop"},
    ]
    for one in events:
        yield sse_event(one, one["type"])


# Gemini.

_GEMINI_USAGE = {
    "promptTokenCount": INPUT_TOKENS,
    "candidatesTokenCount": OUTPUT_TOKENS,
    "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS,
}


def _gemini_tools(body: Mapping[str, Any]) -> list[str]:
    return [one["name"] for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or ()]


def _gemini_whole(answer: Answer) -> dict[str, Any]:
    return _gemini(answer.pieces, answer, is_last=True)


def _gemini(pieces: tuple[str, ...], answer: Answer, *, is_last: bool) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": piece} for piece in pieces]
    if answer.name and is_last:
        parts = [{"functionCall": {"name": answer.name, "args": json.loads(answer.arguments)}}]
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if is_last:
        candidate["finishReason"] = "STOP"
    return {"candidates": [candidate], "usageMetadata": _GEMINI_USAGE, "modelVersion": "gemini-fake"}


def _gemini_stream(answer: Answer) -> Iterator[bytes]:
    for piece in answer.pieces[:-1]:
        yield sse_event(_gemini((piece,), answer, is_last=False))
    yield sse_event(_gemini(answer.pieces[-1:], answer, is_last=True))


# Bedrock's Converse.

_CONVERSE_USAGE = {
    "inputTokens": INPUT_TOKENS,
    "outputTokens": OUTPUT_TOKENS,
    "totalTokens": INPUT_TOKENS + OUTPUT_TOKENS,
}


def _converse_tools(body: Mapping[str, Any]) -> list[str]:
    return [tool["toolSpec"]["name"] for tool in (body.get("toolConfig") or {}).get("tools", ()) if "toolSpec" in tool]


def _converse_whole(answer: Answer) -> dict[str, Any]:
    block: dict[str, Any] = {"text": answer.text}
    if answer.name:
        block = {"toolUse": {"toolUseId": "t1", "name": answer.name, "input": json.loads(answer.arguments)}}
    stop = "tool_use" if answer.name else "end_turn"
    message = {"role": "assistant", "content": [block]}
    return {"output": {"message": message}, "stopReason": stop, "usage": _CONVERSE_USAGE, "metrics": {"latencyMs": 1}}


def _converse_stream(answer: Answer) -> Iterator[bytes]:
    at = {"contentBlockIndex": 0}
    yield event("messageStart", {"role": "assistant"})
    if answer.name:
        yield event("contentBlockStart", {**at, "start": {"toolUse": {"toolUseId": "t1", "name": answer.name}}})
    for part in _halves(answer.arguments) if answer.name else ():
        yield event("contentBlockDelta", {**at, "delta": {"toolUse": {"input": part}}})
    for piece in answer.pieces:
        yield event("contentBlockDelta", {**at, "delta": {"text": piece}})
    yield event("contentBlockStop", at)
    yield event("messageStop", {"stopReason": "tool_use" if answer.name else "end_turn"})
    yield event("metadata", {"usage": _CONVERSE_USAGE, "metrics": {"latencyMs": 1}})


# Cohere.

_COHERE_USAGE = {"tokens": {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}}


def _cohere_whole(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant"}
    if answer.name:
        message |= {"tool_plan": "", "tool_calls": [_openai_call(answer)]}
    else:
        message["content"] = [{"type": "text", "text": answer.text}]
    return {"id": "1", "message": message, "finish_reason": _cohere_finish(answer), "usage": _COHERE_USAGE}


def _cohere_finish(answer: Answer) -> str:
    return "TOOL_CALL" if answer.name else "COMPLETE"


def _cohere_stream(answer: Answer) -> Iterator[bytes]:
    def said(kind: str, message: dict[str, Any]) -> dict[str, Any]:
        return {"type": kind, "index": 0, "delta": {"message": message}}

    events: list[dict[str, Any]] = [{"type": "message-start", "id": "1", "delta": {"message": {"role": "assistant"}}}]
    if answer.name:
        events.append(said("tool-call-start", {"tool_calls": _openai_call(Answer(name=answer.name))}))
        events += [
            said("tool-call-delta", {"tool_calls": {"function": {"arguments": part}}})
            for part in _halves(answer.arguments)
        ]
        events.append({"type": "tool-call-end", "index": 0})
    else:
        events.append(said("content-start", {"content": {"type": "text", "text": ""}}))
        events += [said("content-delta", {"content": {"text": piece}}) for piece in answer.pieces]
        events.append({"type": "content-end", "index": 0})
    ended = {"finish_reason": _cohere_finish(answer), "usage": _COHERE_USAGE}
    events.append({"type": "message-end", "delta": ended})
    for one in events:
        yield sse_event(one, one["type"])
    yield b"data: [DONE]\n\n"


# Ollama.


def _ollama_whole(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.name:
        call = {"name": answer.name, "arguments": json.loads(answer.arguments)}
        message["tool_calls"] = [{"function": call}]
    return _ollama(message, is_last=True)


def _ollama(message: dict[str, Any], *, is_last: bool = False) -> dict[str, Any]:
    counts = {"done_reason": "stop", "prompt_eval_count": INPUT_TOKENS, "eval_count": OUTPUT_TOKENS}
    head = {"model": "llama-fake", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": is_last}
    return {**head, **(counts if is_last else {})}


def _ollama_stream(answer: Answer) -> Iterator[bytes]:
    messages = [{"role": "assistant", "content": piece} for piece in answer.pieces]
    if answer.name:
        messages = [_ollama_whole(answer)["message"]]
    for message in messages:
        yield json.dumps(_ollama(message)).encode() + b"\n"
    yield json.dumps(_ollama({"role": "assistant", "content": ""}, is_last=True)).encode() + b"\n"


def _halves(text: str) -> tuple[str, str]:
    middle = len(text) // 2
    return text[:middle], text[middle:]


_GEMINI = Spoken(_gemini_tools, _gemini_whole, _gemini_stream)
_CONVERSE = Spoken(_converse_tools, _converse_whole, _converse_stream, "application/vnd.amazon.eventstream")
# By a part of the path; whether it streams, None where the body says so.
_PATHS: dict[str, tuple[Spoken, bool | None]] = {
    "/chat/completions": (Spoken(_function_names, _openai_whole, _openai_stream), None),
    "/responses/input_tokens": (Spoken(_names, lambda _: {"input_tokens": INPUT_TOKENS}, _responses_stream), False),
    "/responses": (Spoken(_names, _responses_whole, _responses_stream), None),
    "/messages/count_tokens": (Spoken(_names, lambda _: {"input_tokens": INPUT_TOKENS}, _anthropic_stream), False),
    "/messages": (Spoken(_names, _anthropic_whole, _anthropic_stream), None),
    ":generateContent": (_GEMINI, False),
    ":streamGenerateContent": (_GEMINI, True),
    "/converse-stream": (_CONVERSE, True),
    "/converse": (_CONVERSE, False),
    "/v2/chat": (Spoken(_function_names, _cohere_whole, _cohere_stream), None),
    "/api/chat": (Spoken(_function_names, _ollama_whole, _ollama_stream, "application/x-ndjson"), None),
}
BLUEPRINTS = (
    "openai-chat", "openai-responses", "anthropic-messages", "gemini-chat", "bedrock-converse", "cohere-chat",
    "ollama-chat",
)  # fmt: skip
