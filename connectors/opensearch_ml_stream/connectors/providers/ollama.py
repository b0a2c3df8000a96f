"""Ollama's own interface, `/api/chat` and `/api/generate`: https://github.com/ollama/ollama/blob/main/docs/api.md.

An error is a line of its own, under status 200.
"""

from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.conversation.dialects import openai_kin
from opensearch_ml_stream.connectors.conversation.dialects.ollama_messages import OLLAMA as DIALECT
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.decoding.ndjson import NDJSONFraming
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.provider_errors import read_error
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec


class Ollama:
    """Reads the lines of both paths: `message.content` of chat, `response` of generate."""

    __slots__ = ("_call_count",)

    def __init__(self) -> None:
        self._call_count = 0

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        """Append the line's chunk; `"done": true` or `error` ends the stream."""
        payload: Any = event.payload
        if payload.get("error"):
            return read_error(payload)
        message = event_fields.mapping(payload.get("message"))
        text = event_fields.text(message.get("content")) or event_fields.text(payload.get("response"))
        thinking = event_fields.text(message.get("thinking")) or event_fields.text(payload.get("thinking"))
        calls = tuple(self._read_call(call) for call in event_fields.elements(message.get("tool_calls") or []))
        if text or thinking or calls:
            chunks.append(Chunk(text, thinking, calls))
        return self._ending(payload) if payload["done"] is True else None

    def end_of_input(self) -> Outcome:
        """Return a truncation: only `"done": true` is a good end."""
        return truncated('"done": true')

    def _read_call(self, call: dict[str, Any]) -> ToolCall:
        function = call["function"]
        index = self._call_count
        self._call_count += 1
        name = event_fields.name(function["name"])
        return ToolCall(
            index, event_fields.name(call.get("id")), name, event_fields.arguments(function.get("arguments") or {})
        )

    def _ending(self, payload: dict[str, Any]) -> Ending:
        native = event_fields.name(payload.get("done_reason"))
        counts = event_fields.count(payload.get("prompt_eval_count")), event_fields.count(payload.get("eval_count"))
        usage = None if counts == (None, None) else Usage(*counts)
        return Ending(finish_reason(native), native, usage, event_fields.name(payload.get("model")))


OLLAMA = StreamSpec(
    name="ollama/api/chat",
    enable=Enable(body={"stream": True}, by_default=True),
    framing=NDJSONFraming,
    reader=Ollama,
)

# A spec of its own: it takes a prompt, no conversation.
OLLAMA_GENERATE = StreamSpec("ollama/api/generate", OLLAMA.enable, OLLAMA.framing, OLLAMA.reader)

PROVIDER = Provider(
    interfaces=(
        Interface((OLLAMA.name,), OLLAMA, (r"/api/chat\?",), dialect=DIALECT),
        Interface((OLLAMA_GENERATE.name,), OLLAMA_GENERATE, (r"/api/generate\?",)),
        Interface(("ollama/v1/chat/completions",), OPENAI_CHAT, dialect=openai_kin.OLLAMA),
    )
)
