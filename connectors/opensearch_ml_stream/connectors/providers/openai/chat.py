"""OpenAI chat completions, and everything that speaks them (Azure, DeepSeek, Mistral, vLLM, Ollama /v1, ...).

https://platform.openai.com/docs/api-reference/chat-streaming. The usage comes in a chunk of its own, with empty
`choices`, after the finish reason and before `[DONE]`; so only `[DONE]` ends the stream.
"""

from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import Event, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.decoding.framing.sse import SSEFraming
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

# What the errors' `type` or `code` would have been as an HTTP status.
_ERROR_STATUS = {
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "invalid_api_key": 401,
    "insufficient_quota": 429,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "requests": 429,
    "tokens": 429,
    "server_error": 500,
}


class OpenAIChat:
    """Reads `chat.completion.chunk` events of choice 0. `needs_done`: whether only `[DONE]` is a good end."""

    __slots__ = ("_finish", "_model", "_needs_done", "_tools", "_usage")

    def __init__(self, *, needs_done: bool = True) -> None:
        self._needs_done = needs_done
        self._finish: str | None = None
        self._model: str | None = None
        self._usage: Usage | None = None
        self._tools = ToolCalls()

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        data = event.data
        if data.strip() == b"[DONE]":
            return self._ending()
        payload: Any = orjson.loads(data)
        choices = payload.get("choices")
        if choices:
            choice = first_choice(choices)
            self._read_choice(choice, chunks)
            if choice.get("finish_reason"):
                self._finish = event_fields.name(choice["finish_reason"])
        if payload.get("usage"):
            self._usage = read_usage(payload["usage"])
        if self._model is None:
            self._model = event_fields.name(payload.get("model"))
        if payload.get("error") or payload.get("object") == "error":
            return read_error(payload)
        return None

    def end_of_input(self) -> Outcome:
        return truncated("[DONE]") if self._needs_done or self._finish is None else self._ending()

    def _ending(self) -> Ending:
        return Ending(finish_reason(self._finish), self._finish, self._usage, self._model)

    def _read_choice(self, choice: dict[str, Any], chunks: list[Chunk]) -> None:
        delta = choice.get("delta")
        if not delta:
            return
        text = delta.get("content")
        if text and len(delta) == 1 and isinstance(text, str):
            chunks.append(Chunk(text))
        else:
            self._read_delta(delta, chunks)

    def _read_delta(self, delta: dict[str, Any], chunks: list[Chunk]) -> None:
        content = delta.get("content")
        reasoning = event_fields.text(delta.get("reasoning_content") or delta.get("reasoning"))
        if isinstance(content, list):
            content, thinking = _typed_parts(content)
            reasoning += thinking
        text = event_fields.text(content) + event_fields.text(delta.get("refusal"))
        tool_calls = tuple(self._tools.read(call) for call in delta.get("tool_calls") or ())
        if text or reasoning or tool_calls:
            chunks.append(Chunk(text, reasoning, tool_calls))


class ToolCalls:
    """Keeps parallel calls apart, also for servers that leave `index` out or give 0 for every call."""

    __slots__ = ("_ids", "_last", "_moved")

    def __init__(self) -> None:
        self._ids: dict[int, str | None] = {}
        self._moved: dict[int, int] = {}  # the server's index -> ours, where its next call took the same index
        self._last = 0

    def read(self, call: dict[str, Any]) -> ToolCall:
        function = call.get("function") or {}
        id, name = event_fields.name(call.get("id")), event_fields.name(function.get("name"))
        index = self._index(call.get("index"), id, starts=name is not None)
        return ToolCall(index, id, name, event_fields.arguments(function.get("arguments")))

    def _index(self, given: object, id: str | None, *, starts: bool) -> int:
        index = given if isinstance(given, int) else None
        own = self._last if index is None else self._moved.get(index, index)
        if starts and id is not None and self._ids.get(own) not in (None, id):
            own = max(self._ids) + 1
            if index is not None:
                self._moved[index] = own
        if id is not None or own not in self._ids:
            self._ids[own] = id
        self._last = own
        return own


def first_choice(choices: list[dict[str, Any]]) -> dict[str, Any]:
    """Choice 0 of `choices`; an empty one where the event is about another choice (n > 1)."""
    choice = choices[0]
    if not choice.get("index"):
        return choice
    return next((other for other in choices if not other.get("index")), {})


def _typed_parts(parts: list[Any]) -> tuple[str, str]:
    """Mistral's reasoning models send `content` as a list of typed parts."""
    text = "".join(event_fields.text(part.get("text")) for part in parts if part.get("type") == "text")
    thinking = (inner for part in parts if part.get("type") == "thinking" for inner in part.get("thinking") or ())
    return text, "".join(event_fields.text(inner.get("text")) for inner in thinking)


def read_usage(usage: dict[str, Any]) -> Usage:
    prompt = event_fields.mapping(usage.get("prompt_tokens_details"))
    completion = event_fields.mapping(usage.get("completion_tokens_details"))
    return Usage(
        input_tokens=event_fields.count(usage.get("prompt_tokens")),
        output_tokens=event_fields.count(usage.get("completion_tokens")),
        total_tokens=event_fields.count(usage.get("total_tokens")),
        cached_tokens=event_fields.count(prompt.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))),
        reasoning_tokens=event_fields.count(completion.get("reasoning_tokens")),
    )


def read_error(payload: dict[str, Any]) -> UpstreamError:
    """`{"error": {...}}`, `{"error": "text"}` or `{"object": "error", "message": ...}`."""
    error = payload.get("error") or payload
    if not isinstance(error, dict):
        return event_fields.remote_error(error)
    code = error.get("code")
    status = code if isinstance(code, int) else None
    for word in (code, error.get("type")):
        if status is None and isinstance(word, str):
            status = int(word) if word.isdecimal() and len(word) == 3 else _ERROR_STATUS.get(word)
    return event_fields.remote_error(error.get("message"), status)


OPENAI_CHAT = StreamSpec(
    name="openai/v1/chat/completions",
    enable=Enable(body={"stream": True, "stream_options": {"include_usage": True}}),
    framing=SSEFraming,
    provider=OpenAIChat,
    has_fast_path=True,
)

# For those that refuse `stream_options` and tell the usage unasked, or not at all: Mistral, and Azure OpenAI with an
# `api-version` before 2024-09.
OPENAI_CHAT_PLAIN = StreamSpec(
    name="mistral/v1/chat/completions",
    enable=Enable(body={"stream": True}, drop=("stream_options",)),
    framing=SSEFraming,
    provider=OpenAIChat,
    has_fast_path=True,
)
