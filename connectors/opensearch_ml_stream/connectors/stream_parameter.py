"""Read a connector's `_stream` parameter, its own description of its provider's stream: JSON text to StreamSpec.

{"preset": "openai/v1/chat/completions",            an interface by its name; the rest then changes it
 "enable": {"body": {}, "drop": [], "url": {"replace": ["/a", "/b"], "query": {}}, "headers": {}},
 "framing": "sse | ndjson | json_array | aws_eventstream | text",
 "events": {"text": "$.text", "reasoning": ..., "tool_calls": ..., "finish": ..., "usage": ..., "error": ...},
 "match": {"field": "type", "text": "content_block_delta", ...},
 "terminator": {"data": "[DONE]", "event": ["message_stop"], "eof_ok": false},
 "mode": "delta | cumulative",
 "payload": {...}}                                   with SageMaker's preset: a `_stream` for what its frames hold
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.aws_eventstream import AWSEventStreamFraming
from opensearch_ml_stream.connectors.decoding.contract import FINISHING, Finishing, Framing, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason, native_finish_reason
from opensearch_ml_stream.connectors.decoding.json_array import JSONArrayFraming
from opensearch_ml_stream.connectors.decoding.ndjson import NDJSONFraming
from opensearch_ml_stream.connectors.decoding.plain_text import PlainTextBody, PlainTextFraming
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.known_providers import SHIPPED, KnownProviders
from opensearch_ml_stream.connectors.provider_errors import error_in, error_without_result, read_error, without_answer
from opensearch_ml_stream.connectors.providers.cumulative_text import CumulativeTextDiff
from opensearch_ml_stream.connectors.providers.openai_chat import ToolCalls
from opensearch_ml_stream.connectors.providers.sagemaker import SAGEMAKER, sagemaker_spec
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.jsonpath import JSONPath, compile_path
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


FRAMINGS: Mapping[str, Callable[[], Framing]] = {
    "sse": SSEFraming,
    "ndjson": NDJSONFraming,
    "json_array": JSONArrayFraming,
    "aws_eventstream": AWSEventStreamFraming,
    "text": PlainTextFraming,
}
MAX_SPEC_CHARS = 32_768  # what it describes is done for each event of a stream
_KEYS = ("preset", "enable", "framing", "events", "match", "terminator", "mode", "payload")
_PARTS = ("text", "reasoning", "tool_calls", "finish", "usage", "error")


def read_stream_spec(text: str, known: KnownProviders = SHIPPED) -> StreamSpec:
    """Return the spec of a `_stream` parameter; it has the name of its preset, one of `known`, if it has no events.

    InvalidRequest begins with the JSON path of the field that is wrong.
    """
    if len(text) > MAX_SPEC_CHARS:
        raise InvalidRequest(f"_stream: may have {MAX_SPEC_CHARS} characters; it has {len(text)}")
    return _read_spec(jsontext.value_or_text(text), "_stream", known)


def _read_spec(value: object, path: str, known: KnownProviders) -> StreamSpec:
    document = _object(value, path)
    _check_keys(document, _KEYS, path)
    preset = _preset(document, path, known.presets)
    enable = _enable(document.get("enable"), f"{path}.enable", Enable() if preset is None else preset.enable)
    if preset is not None and "events" not in document:
        spec = replace(preset, name=document["preset"], enable=enable)
        return _change_preset(preset, spec, document, path, known)
    if "payload" in document:
        raise InvalidRequest(f"{path}.payload: goes with the preset {SAGEMAKER.name} and without events")
    framing = _framing(document, path, None if preset is None else preset.framing)
    if framing is PlainTextFraming:
        _refuse(document, ("events", "match", "terminator", "mode"), path, "does not go with the framing text")
        return StreamSpec("_stream", enable, framing, PlainTextBody)
    return StreamSpec(
        "_stream",
        enable,
        framing,
        partial(CustomProvider, _event_rules(document, path, known.finish_words)),
    )


def _preset(document: dict[str, Any], path: str, presets: Mapping[str, StreamSpec]) -> StreamSpec | None:
    if "preset" not in document:
        return None
    name = _string(document["preset"], f"{path}.preset")
    if name not in presets:
        raise InvalidRequest(f"{path}.preset: there is no preset [{name}]; there are {', '.join(sorted(presets))}")
    return presets[name]


def _change_preset(
    preset: StreamSpec, spec: StreamSpec, document: dict[str, Any], path: str, known: KnownProviders
) -> StreamSpec:
    _refuse(document, ("match", "mode", "terminator"), path, "needs events beside the preset")
    if "payload" in document:
        if preset is not SAGEMAKER:
            raise InvalidRequest(f"{path}.payload: goes with the preset {SAGEMAKER.name} only")
        if path != "_stream":
            raise InvalidRequest(f"{path}.payload: a payload holds no other payload")
        hosted = sagemaker_spec(_read_spec(document["payload"], f"{path}.payload", known))
        return replace(hosted, enable=_merge(hosted.enable, spec.enable))
    if "framing" in document:
        spec = replace(spec, framing=_framing(document, path, None), has_fast_path=False)
    return spec


def _merge(first: Enable, second: Enable) -> Enable:
    return Enable(
        body={**first.body, **second.body},
        inner_body={**first.inner_body, **second.inner_body},
        drop=(*first.drop, *second.drop),
        url=second.url or first.url,
        query={**first.query, **second.query},
        headers={**first.headers, **second.headers},
        by_default=first.by_default or second.by_default,
        is_only_url=second.is_only_url if second.url else first.is_only_url,
    )


def _enable(value: object, path: str, default: Enable) -> Enable:
    """Return `default`, the preset's changes to the request, with the parts in `value` replaced."""
    if value is None:
        return default
    parts = _object(value, path)
    _check_keys(parts, ("body", "drop", "url", "query", "headers"), path)
    url = _object(parts.get("url", {}), f"{path}.url")
    _check_keys(url, ("replace", "query"), f"{path}.url")
    enable = default
    if "body" in parts:
        enable = replace(enable, body=_object(parts["body"], f"{path}.body"))
    if "drop" in parts:
        enable = replace(enable, drop=_strings(parts["drop"], f"{path}.drop"))
    if "replace" in url:
        pair = _strings(url["replace"], f"{path}.url.replace")
        if len(pair) != 2 or not pair[0]:
            raise InvalidRequest(f"{path}.url.replace: must be two strings, the old and the new")
        enable = replace(enable, url=((pair[0], pair[1]),))
    for query_path, query in ((f"{path}.url.query", url.get("query")), (f"{path}.query", parts.get("query"))):
        if query is not None:
            enable = replace(enable, query=_string_map(query, query_path))
    if "headers" in parts:
        enable = replace(enable, headers=_string_map(parts["headers"], f"{path}.headers"))
    return enable


def _framing(document: dict[str, Any], path: str, default: Callable[[], Framing] | None) -> Callable[[], Framing]:
    if "framing" not in document:
        return default or SSEFraming
    name = _string(document["framing"], f"{path}.framing")
    if name not in FRAMINGS:
        raise InvalidRequest(f"{path}.framing: must be one of {', '.join(FRAMINGS)}")
    return FRAMINGS[name]


def _event_rules(document: dict[str, Any], path: str, finish_words: Mapping[str, str]) -> EventRules:
    events = _object(document.get("events"), f"{path}.events")
    _check_keys(events, _PARTS, f"{path}.events")
    if "text" not in events:
        raise InvalidRequest(f"{path}.events.text: is needed: the JSONPath of an event's text")
    paths = {part: _string(value, f"{path}.events.{part}") for part, value in events.items()}
    kind_field, match = _match(document.get("match"), f"{path}.match")
    terminator = _object(document.get("terminator", {}), f"{path}.terminator")
    _check_keys(terminator, ("data", "event", "eof_ok"), f"{path}.terminator")
    data = terminator.get("data")
    end_data = None if data is None else _string(data, f"{path}.terminator.data").strip().encode()
    end_kinds = _strings(terminator.get("event", []), f"{path}.terminator.event")
    eof_ok = terminator.get("eof_ok", end_data is None and not end_kinds)
    mode = document.get("mode", "delta")
    if mode not in ("delta", "cumulative"):
        raise InvalidRequest(f"{path}.mode: must be delta or cumulative")
    return EventRules(
        events={part: _json_path(value, f"{path}.events.{part}") for part, value in paths.items()},
        kind_field=kind_field,
        match=match,
        end_data=end_data,
        end_kinds=end_kinds,
        eof_ok=_boolean(eof_ok, f"{path}.terminator.eof_ok"),
        cumulative=mode == "cumulative",
        finish_words=finish_words,
    )


def _json_path(source: str, path: str) -> JSONPath:
    if not source.startswith("$"):
        raise InvalidRequest(f"{path}: a JSONPath begins with $")
    try:
        return compile_path(source)
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error.reason}") from None


def _match(value: object, path: str) -> tuple[str, dict[str, tuple[str, ...]]]:
    if value is None:
        return "type", {}
    match = _object(value, path)
    _check_keys(match, ("field", *_PARTS), path)
    field = _string(match.get("field", "type"), f"{path}.field")
    return field, {part: _strings(kinds, f"{path}.{part}") for part, kinds in match.items() if part != "field"}


def _object(value: object, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        what = "a string that holds a JSON object" if path == "_stream" else "an object"
        raise InvalidRequest(f"{path}: must be {what}")
    return value


def _string(value: object, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidRequest(f"{path}: must be a string that is not empty")
    return value


def _strings(value: object, path: str) -> tuple[str, ...]:
    """Return the strings of one string or an array of strings."""
    elements: list[Any] = value if isinstance(value, list) else [value]
    if not all(isinstance(element, str) for element in elements):
        raise InvalidRequest(f"{path}: must be a string or an array of strings")
    return tuple(elements)


def _string_map(value: object, path: str) -> dict[str, str]:
    strings = _object(value, path)
    if not all(isinstance(element, str) for element in strings.values()):
        raise InvalidRequest(f"{path}: its values must be strings")
    return strings


def _boolean(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidRequest(f"{path}: must be true or false")
    return value


def _check_keys(document: dict[str, Any], allowed: tuple[str, ...], path: str) -> None:
    for key in document:
        if key not in allowed:
            raise InvalidRequest(f"{path}.{key}: is not known; known here are {', '.join(allowed)}")


def _refuse(document: dict[str, Any], keys: tuple[str, ...], path: str, reason: str) -> None:
    for key in keys:
        if key in document:
            raise InvalidRequest(f"{path}.{key}: {reason}")
