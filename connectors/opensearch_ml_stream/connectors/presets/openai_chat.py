"""OpenAI chat completions, and everything that speaks them (Azure, DeepSeek, Mistral, vLLM, Ollama /v1, ...).

https://platform.openai.com/docs/api-reference/chat-streaming. The usage comes in a chunk of its own, with empty
`choices`, after the finish reason and before `[DONE]`; so only `[DONE]` ends the stream.
"""

from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.decoding import Event, Outcome, truncated
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.sse import SSEFraming
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

FINISH = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "error": "error",
    "abort": "error",
    "insufficient_system_resource": "error",
}


class OpenAIChat:
    """Reads `chat.completion.chunk` events of choice 0."""

    __slots__ = ("_finish", "_model", "_usage")

    def __init__(self) -> None:
        self._finish: str | None = None
        self._model: str | None = None
        self._usage: Usage | None = None

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        data = event.data
        if data.strip() == b"[DONE]":
            return self._ending()
        payload: Any = orjson.loads(data)
        choices = payload.get("choices")
        if choices:
            choice = choices[0]
            delta = choice.get("delta")
            if delta:
                text = delta.get("content")
                if text and len(delta) == 1 and isinstance(text, str):
                    chunks.append(Chunk(text))
                else:
                    _read_delta(delta, chunks)
            if choice.get("finish_reason"):
                self._finish = choice["finish_reason"]
        if payload.get("usage"):
            self._usage = read_usage(payload["usage"])
        if self._model is None:
            self._model = payload.get("model")
        if payload.get("error") is not None or payload.get("object") == "error":
            return read_error(payload)
        return None

    def end_of_input(self) -> Outcome:
        """Some servers that speak this dialect close without `[DONE]`; a finish reason is a good end all the same."""
        return truncated("[DONE]") if self._finish is None else self._ending()

    def _ending(self) -> Ending:
        native = self._finish
        return Ending(FINISH.get(native or "stop", "stop"), native, self._usage, self._model)


def _read_delta(delta: dict[str, Any], chunks: list[Chunk]) -> None:
    text = delta.get("content") or ""
    reasoning = delta.get("reasoning_content") or delta.get("reasoning") or ""
    if isinstance(text, list):
        text, reasoning = _typed_parts(text)
    text += delta.get("refusal") or ""
    tool_calls = tuple(_tool_call(call) for call in delta.get("tool_calls") or ())
    if text or reasoning or tool_calls:
        chunks.append(Chunk(text, reasoning, tool_calls))


def _typed_parts(parts: list[Any]) -> tuple[str, str]:
    """Mistral's reasoning models send `content` as a list of typed parts."""
    text = "".join(part.get("text", "") for part in parts if part.get("type") == "text")
    thinking = (inner for part in parts if part.get("type") == "thinking" for inner in part.get("thinking", ()))
    return text, "".join(inner.get("text", "") for inner in thinking)


def _tool_call(call: dict[str, Any]) -> ToolCall:
    function = call.get("function") or {}
    return ToolCall(
        call.get("index", 0),
        call.get("id") or None,
        function.get("name") or None,
        function.get("arguments") or "",
    )


def read_usage(usage: dict[str, Any]) -> Usage:
    prompt = usage.get("prompt_tokens_details") or {}
    completion = usage.get("completion_tokens_details") or {}
    return Usage(
        input_tokens=usage.get("prompt_tokens"),
        output_tokens=usage.get("completion_tokens"),
        total_tokens=usage.get("total_tokens"),
        cached_tokens=prompt.get("cached_tokens", usage.get("prompt_cache_hit_tokens")),
        reasoning_tokens=completion.get("reasoning_tokens"),
    )


def read_error(payload: dict[str, Any]) -> UpstreamError:
    """`{"error": {...}}`, `{"error": "text"}` or `{"object": "error", "message": ...}`."""
    error = payload.get("error", payload)
    message = error.get("message") if isinstance(error, dict) else error
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else None
    return UpstreamError(f"Error from remote service: {message}", provider_status=status)


OPENAI_CHAT = StreamSpec(
    name="openai/v1/chat/completions",
    enable=Enable(body={"stream": True, "stream_options": {"include_usage": True}}),
    framing=SSEFraming,
    provider=OpenAIChat,
)
