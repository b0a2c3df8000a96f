"""Cloudflare Workers AI, the events of its own form: `data: {"response": "..."}`, then `[DONE]`.

https://developers.cloudflare.com/workers-ai/features/streaming. Some models send a function call whole, others in
fragments as OpenAI does; newer models send OpenAI's events altogether (packages/workers-ai-provider/src/streaming.ts
of cloudflare/ai). So the stream spec, in `workers_ai_run`, goes by the first event.
"""

from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import FINISHING, Finishing, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider_errors import error_without_result, read_error
from opensearch_ml_stream.connectors.providers.openai_chat import ToolCalls


class WorkersAI:
    """Reads `response` and `tool_calls` of each event."""

    __slots__ = ("_finish", "_tool_calls", "_usage", "_whole_calls")

    def __init__(self) -> None:
        self._finish: str | None = None
        self._tool_calls = ToolCalls()
        self._usage: Usage | None = None
        self._whole_calls = 0

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        """Append the event's chunk; `[DONE]` or an error ends the stream."""
        if event.data.strip() == b"[DONE]":
            return self._ending()
        payload: Any = event.payload
        if payload.get("error"):
            return read_error(payload)
        text = event_fields.arguments(payload.get("response"))  # a number at times, in JSON mode an object
        calls = [self._as_openai(call) for call in event_fields.elements(payload.get("tool_calls") or [])]
        fragments = self._tool_calls.read_all(calls)
        tool_calls = tuple(call for call in fragments if call.id or call.name or call.arguments)
        if text or tool_calls:
            chunks.append(Chunk(text, tool_calls=tool_calls))
        if usage := event_fields.mapping(payload.get("usage")):
            self._usage = _read_usage(usage).after(self._usage)
        self._finish = event_fields.name(payload.get("finish_reason")) or self._finish
        if "response" not in payload and not (calls or usage) and (error := error_without_result(payload)) is not None:
            return error
        return FINISHING if self._finish is not None else None

    def end_of_input(self) -> Outcome:
        """Return a good ending if a finish reason has come."""
        return truncated("[DONE]") if self._finish is None else self._ending()

    def _ending(self) -> Ending:
        return Ending(finish_reason(self._finish), self._finish, self._usage)

    def _as_openai(self, call: dict[str, Any]) -> dict[str, Any]:
        """Return a call in OpenAI's shape; whole calls have no index of their own."""
        if "function" in call:
            return call
        index = self._whole_calls
        self._whole_calls += 1
        function = {"name": call.get("name"), "arguments": call.get("arguments") or {}}
        return {"index": index, "id": call.get("id"), "function": function}


def _read_usage(usage: dict[str, Any]) -> Usage:
    details = event_fields.mapping(usage.get("prompt_tokens_details"))
    return Usage(
        input_tokens=event_fields.count(usage.get("prompt_tokens")),
        output_tokens=event_fields.count(usage.get("completion_tokens")),
        total_tokens=event_fields.count(usage.get("total_tokens")),
        cached_tokens=event_fields.count(details.get("cached_tokens")),
    )
