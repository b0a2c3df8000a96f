"""OpenAI Responses interface: https://platform.openai.com/docs/api-reference/responses-streaming.

`response.completed`, `.incomplete` or `.failed` ends the stream and holds the usage. There is no `[DONE]`.
"""

from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import Event, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.decoding.framing.sse import SSEFraming
from opensearch_ml_stream.connectors.providers.openai.chat import read_error
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

_TEXT = ("response.output_text.delta", "response.refusal.delta")
_REASONING = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")


class OpenAIResponses:
    """Reads events by the `type` in their data."""

    __slots__ = ("_tool_indexes", "_with_arguments")

    def __init__(self) -> None:
        self._tool_indexes: dict[int, int] = {}  # output index -> tool call index
        self._with_arguments: set[int] = set()  # output indexes whose arguments have come in fragments

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        """Append the chunk of a delta; `response.completed`, `.incomplete`, `.failed` or `error` ends the stream."""
        payload: Any = orjson.loads(event.data)
        kind = payload["type"]
        if kind in _TEXT:
            if text := event_fields.text(payload["delta"]):
                chunks.append(Chunk(text))
        elif kind in _REASONING:
            if text := event_fields.text(payload["delta"]):
                chunks.append(Chunk(reasoning=text))
        elif kind in ("response.completed", "response.incomplete"):
            return self._ending(payload["response"])
        elif kind == "response.failed":
            return read_error(payload["response"])
        elif kind == "error":
            return read_error(payload if isinstance(payload.get("error"), dict) else {"error": payload})
        else:
            self._read_tool_call(kind, payload, chunks)
        return None

    def end_of_input(self) -> Outcome:
        """Return a truncation: only `response.completed` or `.incomplete` is a good end."""
        return truncated("response.completed")

    def _read_tool_call(self, kind: str, payload: dict[str, Any], chunks: list[Chunk]) -> None:
        if kind == "response.output_item.added" and payload["item"]["type"] == "function_call":
            item = payload["item"]
            index = self._tool_indexes.setdefault(payload["output_index"], len(self._tool_indexes))
            chunks.append(
                Chunk(
                    tool_calls=(ToolCall(index, event_fields.name(item["call_id"]), event_fields.name(item["name"])),)
                )
            )
        elif kind == "response.function_call_arguments.delta":
            self._read_arguments(payload["output_index"], payload["delta"], chunks)
        elif kind == "response.function_call_arguments.done" and payload["output_index"] not in self._with_arguments:
            self._read_arguments(payload["output_index"], payload["arguments"], chunks)

    def _read_arguments(self, output: int, text: Any, chunks: list[Chunk]) -> None:
        self._with_arguments.add(output)
        index = self._tool_indexes.setdefault(output, len(self._tool_indexes))
        if fragment := event_fields.text(text):
            chunks.append(Chunk(tool_calls=(ToolCall(index, arguments=fragment),)))

    def _ending(self, response: dict[str, Any]) -> Ending:
        native = event_fields.mapping(response.get("incomplete_details")).get("reason") or response.get("status")
        word = event_fields.name(native)
        return Ending(
            finish_reason(word, tools=bool(self._tool_indexes)),
            word,
            _usage(response),
            event_fields.name(response.get("model")),
        )


def _usage(response: dict[str, Any]) -> Usage | None:
    usage = event_fields.mapping(response.get("usage"))
    if not usage:
        return None
    return Usage(
        input_tokens=event_fields.count(usage.get("input_tokens")),
        output_tokens=event_fields.count(usage.get("output_tokens")),
        total_tokens=event_fields.count(usage.get("total_tokens")),
        cached_tokens=event_fields.count(event_fields.mapping(usage.get("input_tokens_details")).get("cached_tokens")),
        reasoning_tokens=event_fields.count(
            event_fields.mapping(usage.get("output_tokens_details")).get("reasoning_tokens")
        ),
    )


OPENAI_RESPONSES = StreamSpec(
    name="openai/v1/responses",
    enable=Enable(body={"stream": True}),
    framing=SSEFraming,
    provider=OpenAIResponses,
)
