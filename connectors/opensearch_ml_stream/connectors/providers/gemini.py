"""Gemini, at Google AI and Vertex AI: https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent.

There is no terminator: the usage may come after the finish reason, so only the end of the body ends the stream. The
response to a blocked prompt has no candidates and no finish reason.
"""

from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import Event, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.decoding.framing.json_array import JSONArrayFraming
from opensearch_ml_stream.connectors.decoding.framing.sse import SSEFraming
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec


class Gemini:
    """Reads candidate 0 of `GenerateContentResponse` objects."""

    __slots__ = ("_call_count", "_finish", "_model", "_usage")

    def __init__(self) -> None:
        self._call_count = 0
        self._finish: str | None = None
        self._model: str | None = None
        self._usage: Usage | None = None

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        """Append the chunk of candidate 0; an error or a blocked prompt ends the stream."""
        payload: Any = orjson.loads(event.data)
        if payload.get("error"):
            return _error(payload["error"])
        candidates = payload.get("candidates")
        if candidates and not candidates[0].get("index"):
            candidate = candidates[0]
            parts = event_fields.mapping(candidate.get("content")).get("parts")
            if parts:
                self._read_parts(parts, chunks)
            self._finish = event_fields.name(candidate.get("finishReason")) or self._finish
        if usage := event_fields.mapping(payload.get("usageMetadata")):
            self._usage = _usage(usage)
        self._model = self._model or event_fields.name(payload.get("modelVersion"))
        blocked = event_fields.mapping(payload.get("promptFeedback")).get("blockReason")
        if blocked and not candidates:
            return Ending("content_filter", event_fields.name(blocked), self._usage, self._model)
        return None

    def end_of_input(self) -> Outcome:
        """Return a good ending if a finish reason has come."""
        if self._finish is None:
            return truncated("finishReason")
        return Ending(finish_reason(self._finish, tools=self._call_count > 0), self._finish, self._usage, self._model)

    def _read_parts(self, parts: list[dict[str, Any]], chunks: list[Chunk]) -> None:
        text = "".join([event_fields.text(part.get("text")) for part in parts if not part.get("thought")])
        reasoning = "".join([event_fields.text(part.get("text")) for part in parts if part.get("thought")])
        calls = tuple(self._read_call(part["functionCall"]) for part in parts if part.get("functionCall"))
        if text or reasoning or calls:
            chunks.append(Chunk(text, reasoning, calls))

    def _read_call(self, call: dict[str, Any]) -> ToolCall:
        index = self._call_count
        self._call_count += 1
        return ToolCall(
            index,
            event_fields.name(call.get("id")),
            event_fields.name(call["name"]),
            event_fields.arguments(call.get("args")),
        )


def _usage(usage: dict[str, Any]) -> Usage:
    return Usage(
        input_tokens=event_fields.count(usage.get("promptTokenCount")),
        output_tokens=event_fields.count(usage.get("candidatesTokenCount")),
        total_tokens=event_fields.count(usage.get("totalTokenCount")),
        cached_tokens=event_fields.count(usage.get("cachedContentTokenCount")),
        reasoning_tokens=event_fields.count(usage.get("thoughtsTokenCount")),
    )


def _error(error: Any) -> Outcome:
    fields = event_fields.mapping(error)
    return event_fields.remote_error(fields.get("message", error), fields.get("code"))


_STREAM_URL = ((":generateContent", ":streamGenerateContent"),)

GEMINI = StreamSpec(
    name="gemini/v1beta/generatecontent",
    enable=Enable(url=_STREAM_URL, query={"alt": "sse"}),
    framing=SSEFraming,
    provider=Gemini,
)

# For gateways that do not forward the query `alt=sse`.
GEMINI_ARRAY = StreamSpec(
    name="gemini/v1beta/generatecontent/json-array",
    enable=Enable(url=_STREAM_URL),
    framing=JSONArrayFraming,
    provider=Gemini,
)
