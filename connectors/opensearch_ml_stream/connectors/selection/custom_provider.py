"""Custom provider: read events by the rules in a connector's `_stream` parameter, for providers without a module."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import FINISHING, Finishing, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason, native_finish_reason
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider_errors import error_in, error_without_result, read_error, without_answer
from opensearch_ml_stream.connectors.providers.cumulative_text import CumulativeTextDiff
from opensearch_ml_stream.connectors.providers.openai_chat import ToolCalls
from opensearch_ml_stream.connectors.syntax.jsonpath import JSONPath
from opensearch_ml_stream.connectors.syntax.work_limit import WorkLimit

_USAGE_NAMES = {
    "input_tokens": ("input_tokens", "prompt_tokens", "inputTokens", "promptTokenCount", "prompt_eval_count"),
    "output_tokens": ("output_tokens", "completion_tokens", "outputTokens", "candidatesTokenCount", "eval_count"),
    "total_tokens": ("total_tokens", "totalTokens", "totalTokenCount"),
}


@dataclass(frozen=True, slots=True)
class EventRules:
    """What `_stream` says about events: the JSONPath of each part, and what ends the stream.

    A part (text, reasoning, tool_calls, finish, usage, error) is read from every event, or only from those whose kind
    is in `match`. An event's kind is its value of `kind_field`, or its name if it has none. The stream ends with an
    event whose data is `end_data` or whose kind is in `end_kinds`; `eof_ok` says whether the end of the body is a good
    end too; after a finish reason it always is. `cumulative` says that each event's text repeats what came before it.
    `finish_words` are what `finish_reason` knows besides its own.
    """

    events: Mapping[str, JSONPath]
    kind_field: str = ""
    match: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    end_data: bytes | None = None
    end_kinds: tuple[str, ...] = ()
    eof_ok: bool = True
    cumulative: bool = False
    finish_words: Mapping[str, str] = field(default_factory=dict)


class CustomProvider:
    """Reads events by EventRules."""

    __slots__ = (
        "_cumulative_text",
        "_finish",
        "_has_answer",
        "_has_read",
        "_odd",
        "_rules",
        "_tool_calls",
        "_usage",
        "_work",
    )

    def __init__(self, rules: EventRules) -> None:
        self._rules = rules
        self._finish: str | None = None
        self._has_answer = False  # or part of one
        self._has_read = False  # an event
        self._odd: UpstreamError | None = None  # what may be an error, as long as nothing else has come
        self._usage: Usage | None = None
        self._tool_calls = ToolCalls()
        self._cumulative_text = CumulativeTextDiff()
        self._work = WorkLimit("Reading events by the JSONPaths of _stream", error=UpstreamError)

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        """Append the event's chunk, if it has any text, reasoning or tool calls; see `EventReader.read`."""
        try:
            return self._read(event, chunks)
        except UpstreamError as error:  # a path takes too much work for the events
            return error

    def _read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        rules = self._rules
        if rules.end_data is not None and event.data.strip() == rules.end_data:
            return self._ending() if self._has_read else without_answer()
        payload: Any = event.payload
        self._work.extend(len(event.data))
        kind = payload.get(rules.kind_field) if rules.kind_field and isinstance(payload, dict) else None
        kind = kind if isinstance(kind, str) else event.name
        if errors := self._values("error", kind, payload):
            return read_error(errors[0])
        self._has_read = True
        texts = self._values("text", kind, payload)
        text = "".join([event_fields.text(value) for value in texts])
        if rules.cumulative and text:
            text = self._cumulative_text.new_text(text)
        reasoning = "".join([event_fields.text(value) for value in self._values("reasoning", kind, payload)])
        calls = self._read_tool_calls(kind, payload)
        if text or reasoning or calls:
            chunks.append(Chunk(text, reasoning, calls))
        finish, usage = self._values("finish", kind, payload), self._values("usage", kind, payload)
        is_answer = bool(text or reasoning or calls or finish or usage)
        if not is_answer and (error := error_in(payload)) is not None:
            return error
        self._note(payload, is_answer=is_answer or bool(texts))
        self._read_finish(finish, chunks)
        for value in usage:
            self._usage = _usage(event_fields.mapping(value)).after(self._usage)
        if kind and kind in rules.end_kinds:
            return self._ending()
        return FINISHING if self._finish is not None else None

    def end_of_input(self) -> Outcome:
        """Return a good ending after a finish reason, or if the rules allow the body to end without a terminator."""
        return self._ending() if self._rules.eof_ok or self._finish is not None else truncated()

    def _note(self, payload: Any, *, is_answer: bool) -> None:
        if is_answer:
            self._has_answer, self._odd = True, None
        elif not self._has_answer:
            self._odd = self._odd or error_without_result(payload)

    def _read_finish(self, values: list[Any], chunks: list[Chunk]) -> None:
        for value in values:
            self._finish = native_finish_reason(value) or self._finish
        if values and self._finish is not None:
            self._tool_calls.end(self._finish, chunks)

    def _values(self, part: str, kind: str, payload: Any) -> list[Any]:
        """Return the values that the part's path selects in this event, without nulls."""
        path = self._rules.events.get(part)
        kinds = self._rules.match.get(part)
        if path is None or (kinds is not None and kind not in kinds):
            return []
        return [value for value in path.select(payload, self._work) if value is not None]

    def _read_tool_calls(self, kind: str, payload: Any) -> tuple[ToolCall, ...]:
        """Return the fragments of tool calls, which have OpenAI's shape, in a list or one by one."""
        values = self._values("tool_calls", kind, payload)
        calls = [call for value in values for call in (value if isinstance(value, list) else [value])]
        return self._tool_calls.read_all(event_fields.elements(calls))

    def _ending(self) -> Outcome:
        if self._odd is not None:
            return self._odd
        return Ending(finish_reason(self._finish, self._rules.finish_words), self._finish, self._usage)


def _usage(counts: dict[str, Any]) -> Usage:
    def first(names: tuple[str, ...]) -> int | None:
        return next((event_fields.count(counts[name]) for name in names if name in counts), None)

    return Usage(**{part: first(names) for part, names in _USAGE_NAMES.items()})
