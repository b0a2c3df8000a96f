"""`_stream`, a connector's own description of its provider's stream, read and checked: JSON text in, StreamSpec out.

{"preset": "openai/v1/chat/completions",            one of PRESETS; the rest then changes it
 "enable": {"body": {}, "drop": [], "url": {"replace": ["/a", "/b"], "query": {}}, "headers": {}},
 "framing": "sse | ndjson | json_array | aws_eventstream | text",
 "events": {"text": "$.text", "reasoning": ..., "tool_calls": ..., "finish": ..., "usage": ..., "error": ...},
 "match": {"field": "type", "text": "content_block_delta", ...},
 "terminator": {"data": "[DONE]", "event": ["message_stop"], "eof_ok": false},
 "mode": "delta | cumulative",
 "payload": {...}}                                   with the preset of SageMaker: what its frames hold
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from opensearch_ml_stream.connectors.decoding.contract import Framing
from opensearch_ml_stream.connectors.decoding.framing.aws_eventstream import AWSEventStreamFraming
from opensearch_ml_stream.connectors.decoding.framing.json_array import JSONArrayFraming
from opensearch_ml_stream.connectors.decoding.framing.ndjson import NDJSONFraming
from opensearch_ml_stream.connectors.decoding.framing.plain_text import PlainTextFraming
from opensearch_ml_stream.connectors.decoding.framing.sse import SSEFraming
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.providers.model_hosts.sagemaker import SAGEMAKER, sagemaker
from opensearch_ml_stream.connectors.providers.openai.chat import OpenAIChat
from opensearch_ml_stream.connectors.providers.openai.completions import OpenAICompletions
from opensearch_ml_stream.connectors.providers.plain_text_body import PlainTextBody
from opensearch_ml_stream.connectors.selection.custom_provider import CustomProvider, EventRules
from opensearch_ml_stream.connectors.selection.presets import PRESETS
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec
from opensearch_ml_stream.connectors.syntax.jsonpath import JSONPath, compile_path

FRAMINGS: Mapping[str, Callable[[], Framing]] = {
    "sse": SSEFraming,
    "ndjson": NDJSONFraming,
    "json_array": JSONArrayFraming,
    "aws_eventstream": AWSEventStreamFraming,
    "text": PlainTextFraming,
}
_KEYS = ("preset", "enable", "framing", "events", "match", "terminator", "mode", "payload")
_PARTS = ("text", "reasoning", "tool_calls", "finish", "usage", "error")


def read_stream_spec(text: str) -> StreamSpec:
    """The spec of a `_stream` parameter; InvalidRequest names the field that is wrong."""
    try:
        document = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        raise InvalidRequest("_stream: must be the text of a JSON object") from None
    return _read_spec(document, "_stream")


def _read_spec(value: object, path: str) -> StreamSpec:
    document = _object(value, path)
    _check_keys(document, _KEYS, path)
    preset = _preset(document, path)
    enable = _enable(document.get("enable"), f"{path}.enable", Enable() if preset is None else preset.enable)
    if preset is not None and "events" not in document:
        return _changed_preset(preset, replace(preset, enable=enable), document, path)
    if "payload" in document:
        raise InvalidRequest(f"{path}.payload: goes with the preset {SAGEMAKER.name} and without events")
    framing = _framing(document, path, None if preset is None else preset.framing)
    if framing is PlainTextFraming:
        _refuse(document, ("events", "match", "terminator", "mode"), path, "does not go with the framing text")
        return StreamSpec("_stream", enable, framing, PlainTextBody)
    return StreamSpec("_stream", enable, framing, partial(CustomProvider, _declaration(document, path)))


def _preset(document: dict[str, Any], path: str) -> StreamSpec | None:
    if "preset" not in document:
        return None
    name = _text(document["preset"], f"{path}.preset")
    if name not in PRESETS:
        raise InvalidRequest(f"{path}.preset: there is no preset [{name}]; there are {', '.join(sorted(PRESETS))}")
    return PRESETS[name]


def _changed_preset(preset: StreamSpec, spec: StreamSpec, document: dict[str, Any], path: str) -> StreamSpec:
    _refuse(document, ("match", "mode"), path, "needs events beside the preset")
    if "payload" in document:
        if preset is not SAGEMAKER:
            raise InvalidRequest(f"{path}.payload: goes with the preset {SAGEMAKER.name} only")
        inner = _read_spec(document["payload"], f"{path}.payload")
        return replace(sagemaker(inner), enable=_merged(sagemaker(inner).enable, spec.enable))
    if "framing" in document:
        spec = replace(spec, framing=_framing(document, path, None), has_fast_path=False)
    terminator = _object(document.get("terminator", {}), f"{path}.terminator")
    _check_keys(terminator, ("eof_ok",), f"{path}.terminator")
    if terminator and _boolean(terminator["eof_ok"], f"{path}.terminator.eof_ok"):
        if preset.provider not in (OpenAIChat, OpenAICompletions):
            raise InvalidRequest(f"{path}.terminator.eof_ok: can be true only with a preset of OpenAI's interface")
        spec = replace(spec, provider=partial(preset.provider, needs_done=False))
    return spec


def _merged(first: Enable, second: Enable) -> Enable:
    return Enable(
        body={**first.body, **second.body},
        drop=(*first.drop, *second.drop),
        url=second.url or first.url,
        query={**first.query, **second.query},
        headers={**first.headers, **second.headers},
    )


def _enable(value: object, path: str, default: Enable) -> Enable:
    """Each part that is given replaces the preset's."""
    if value is None:
        return default
    given = _object(value, path)
    _check_keys(given, ("body", "drop", "url", "query", "headers"), path)
    url = _object(given.get("url", {}), f"{path}.url")
    _check_keys(url, ("replace", "query"), f"{path}.url")
    changed = default
    if "body" in given:
        changed = replace(changed, body=_object(given["body"], f"{path}.body"))
    if "drop" in given:
        changed = replace(changed, drop=_texts(given["drop"], f"{path}.drop"))
    if "replace" in url:
        pair = _texts(url["replace"], f"{path}.url.replace")
        if len(pair) != 2 or not pair[0]:
            raise InvalidRequest(f"{path}.url.replace: must be two texts, the old and the new")
        changed = replace(changed, url=((pair[0], pair[1]),))
    for part, found in ((f"{path}.url.query", url.get("query")), (f"{path}.query", given.get("query"))):
        if found is not None:
            changed = replace(changed, query=_text_map(found, part))
    if "headers" in given:
        changed = replace(changed, headers=_text_map(given["headers"], f"{path}.headers"))
    return changed


def _framing(document: dict[str, Any], path: str, default: Callable[[], Framing] | None) -> Callable[[], Framing]:
    if "framing" not in document:
        return default or SSEFraming
    name = _text(document["framing"], f"{path}.framing")
    if name not in FRAMINGS:
        raise InvalidRequest(f"{path}.framing: must be one of {', '.join(FRAMINGS)}")
    return FRAMINGS[name]


def _declaration(document: dict[str, Any], path: str) -> EventRules:
    events = _object(document.get("events"), f"{path}.events")
    _check_keys(events, _PARTS, f"{path}.events")
    if "text" not in events:
        raise InvalidRequest(f"{path}.events.text: is needed: the JSONPath of an event's text")
    paths = {part: _text(value, f"{path}.events.{part}") for part, value in events.items()}
    kind_field, match = _match(document.get("match"), f"{path}.match")
    terminator = _object(document.get("terminator", {}), f"{path}.terminator")
    _check_keys(terminator, ("data", "event", "eof_ok"), f"{path}.terminator")
    data = terminator.get("data")
    end_data = None if data is None else _text(data, f"{path}.terminator.data").strip().encode()
    end_kinds = _texts(terminator.get("event", []), f"{path}.terminator.event")
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
    )


def _json_path(text: str, path: str) -> JSONPath:
    if not text.startswith("$"):
        raise InvalidRequest(f"{path}: a JSONPath begins with $")
    try:
        return compile_path(text)
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error.reason}") from None


def _match(value: object, path: str) -> tuple[str, dict[str, tuple[str, ...]]]:
    if value is None:
        return "type", {}
    given = _object(value, path)
    _check_keys(given, ("field", *_PARTS), path)
    field = _text(given.get("field", "type"), f"{path}.field")
    return field, {part: _texts(kinds, f"{path}.{part}") for part, kinds in given.items() if part != "field"}


def _object(value: object, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRequest(f"{path}: must be an object")
    return value


def _text(value: object, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidRequest(f"{path}: must be a text")
    return value


def _texts(value: object, path: str) -> tuple[str, ...]:
    """One text, or a list of them."""
    listed = value if isinstance(value, list) else [value]
    if not all(isinstance(element, str) for element in listed):
        raise InvalidRequest(f"{path}: must be a text or a list of texts")
    return tuple(listed)


def _text_map(value: object, path: str) -> dict[str, str]:
    given = _object(value, path)
    if not all(isinstance(element, str) for element in given.values()):
        raise InvalidRequest(f"{path}: its values must be texts")
    return given


def _boolean(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidRequest(f"{path}: must be true or false")
    return value


def _check_keys(document: dict[str, Any], known: tuple[str, ...], path: str) -> None:
    for key in document:
        if key not in known:
            raise InvalidRequest(f"{path}.{key}: is not known; known here are {', '.join(known)}")


def _refuse(document: dict[str, Any], keys: tuple[str, ...], path: str, why: str) -> None:
    for key in keys:
        if key in document:
            raise InvalidRequest(f"{path}.{key}: {why}")
