"""A provider that a connector describes in its `_stream` parameter, instead of one that this package knows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import Event, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.providers.cumulative_text import Accumulated
from opensearch_ml_stream.connectors.providers.openai.chat import ToolCalls
from opensearch_ml_stream.connectors.syntax.jsonpath import JSONPath

_USAGE_NAMES = {
    "input_tokens": ("input_tokens", "prompt_tokens", "inputTokens", "promptTokenCount", "prompt_eval_count"),
    "output_tokens": ("output_tokens", "completion_tokens", "outputTokens", "candidatesTokenCount", "eval_count"),
    "total_tokens": ("total_tokens", "totalTokens", "totalTokenCount"),
}


@dataclass(frozen=True, slots=True)
class EventRules:
    """What `_stream` says about events. A part is read from every event, or from those whose kind is in `match`.

    An event's kind is its value of `kind_field`, or its name where it has none.
    """

    events: Mapping[str, JSONPath]
    kind_field: str = ""
    match: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    end_data: bytes | None = None
    end_kinds: tuple[str, ...] = ()
    eof_ok: bool = True
    cumulative: bool = False


class CustomProvider:
    """Reads events as a EventRules says."""

    __slots__ = ("_declared", "_finish", "_so_far", "_tools", "_usage")

    def __init__(self, declared: EventRules) -> None:
        self._declared = declared
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._tools = ToolCalls()
        self._so_far = Accumulated()

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        declared = self._declared
        if declared.end_data is not None and event.data.strip() == declared.end_data:
            return self._ending()
        payload: Any = orjson.loads(event.data)
        kind = payload.get(declared.kind_field) if declared.kind_field and isinstance(payload, dict) else None
        kind = kind if isinstance(kind, str) else event.name
        if errors := self._values("error", kind, payload):
            return event_fields.remote_error(_message(errors[0]))
        text = "".join([event_fields.text(value) for value in self._values("text", kind, payload)])
        if declared.cumulative and text:
            text = self._so_far.add(text)
        reasoning = "".join([event_fields.text(value) for value in self._values("reasoning", kind, payload)])
        calls = self._read_tool_calls(kind, payload)
        if text or reasoning or calls:
            chunks.append(Chunk(text, reasoning, calls))
        for value in self._values("finish", kind, payload):
            self._finish = event_fields.name(value) or self._finish
        for value in self._values("usage", kind, payload):
            self._usage = _usage(event_fields.mapping(value))
        return self._ending() if kind and kind in declared.end_kinds else None

    def end_of_input(self) -> Outcome:
        return self._ending() if self._declared.eof_ok else truncated()

    def _values(self, part: str, kind: str, payload: Any) -> list[Any]:
        """What the part's path selects in this event, less nulls."""
        path = self._declared.events.get(part)
        kinds = self._declared.match.get(part)
        if path is None or (kinds is not None and kind not in kinds):
            return []
        return [value for value in path.select(payload) if value is not None]

    def _read_tool_calls(self, kind: str, payload: Any) -> tuple[ToolCall, ...]:
        """Calls as OpenAI writes them, in a list or one by one."""
        found = self._values("tool_calls", kind, payload)
        calls = [call for value in found for call in (value if isinstance(value, list) else [value])]
        return tuple(self._tools.read(call) for call in calls)

    def _ending(self) -> Ending:
        return Ending(finish_reason(self._finish), self._finish, self._usage)


def _usage(counted: dict[str, Any]) -> Usage:
    def first(names: tuple[str, ...]) -> int | None:
        return next((event_fields.count(counted[name]) for name in names if name in counted), None)

    return Usage(**{part: first(names) for part, names in _USAGE_NAMES.items()})


def _message(error: Any) -> Any:
    return error.get("message", error) if isinstance(error, dict) else error
