"""`input_processors` and `output_processors`: chains of small changes to a JSON value.

The parameter is a JSON array of `{"type": ..., ...}`. The configuration is checked when it is compiled; a processor
that does not fit a value at run time (a path that is not there, a pattern that does not match) leaves it as it is.
A string value counts as the JSON text that it holds where a processor reads a document.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.processors.conditions import check_condition, matches
from opensearch_ml_stream.connectors.processors.json_edit import Document, find, remove, set_value
from opensearch_ml_stream.connectors.processors.replacement import compile_replacement
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.jsonpath import MISSING, compile_path
from opensearch_ml_stream.connectors.syntax.regex import compile_regex

MAX_CONFIG_CHARS = 100_000  # configurations come from callers and are kept compiled

Processor = Callable[[Any], Any]
_Config = Mapping[str, Any]


def process(processors: Sequence[Processor], value: Any) -> Any:
    """The value after all processors, each working on what the one before it gave."""
    for processor in processors:
        value = processor(value)
    return value


def process_text(processors: Sequence[Processor], text: str) -> str:
    """As `process`, for a request body: text in, text out."""
    return as_text(process(processors, text))


def compile_processors(text: str, name: str) -> tuple[Processor, ...]:
    """The processors of a parameter's text; InvalidRequest names the place, such as `output_processors[1].path`."""
    if len(text) > MAX_CONFIG_CHARS:
        raise InvalidRequest(f"{name} may have {MAX_CONFIG_CHARS} characters; these are {len(text)}")
    return _compile(text, name)


@lru_cache(maxsize=256)
def _compile(text: str, name: str) -> tuple[Processor, ...]:
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"{name} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    return _chain(config, name)


def as_text(value: Any) -> str:
    """A string as it is, anything else as compact JSON."""
    return value if isinstance(value, str) else jsontext.dumps(value)


def _chain(config: Any, place: str) -> tuple[Processor, ...]:
    entries = [config] if isinstance(config, dict) else config
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidRequest(f"{place} must be an array of objects, each with a type")
    return tuple(_processor(entry, f"{place}[{index}]") for index, entry in enumerate(entries))


def _processor(config: _Config, place: str) -> Processor:
    compile_type = _TYPES.get(str(config.get("type")))
    if compile_type is None:
        raise InvalidRequest(f"{place}.type must be one of {', '.join(_TYPES)}")
    return compile_type(config, place)


def _required_text(config: _Config, key: str, place: str) -> str:
    value = config.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InvalidRequest(f"{place}.{key} must be a string that is not empty")
    return value


def _document(value: Any) -> Document | None:
    """A copy of the value to change, None if it is text that is no JSON."""
    try:
        return Document(json.loads(as_text(value)))
    except json.JSONDecodeError:
        return None


def _to_string(config: _Config, place: str) -> Processor:
    if config.get("escape_json") is True:
        return lambda value: jsontext.escape(as_text(value))
    return as_text


def _regex_replace(config: _Config, place: str) -> Processor:
    pattern = compile_regex(_required_text(config, "pattern", place), dot_all=True)
    replacement = compile_replacement(str(config.get("replacement", "")), pattern.groups, f"{place}.replacement")
    count = 0 if config.get("replace_all", True) is True else 1
    return lambda value: pattern.sub(replacement, as_text(value), count)


def _regex_capture(config: _Config, place: str) -> Processor:
    pattern = compile_regex(_required_text(config, "pattern", place), dot_all=True)
    groups = [group for group in _groups(config.get("groups", "1"), place) if group <= pattern.groups]

    def capture(value: Any) -> Any:
        found = pattern.search(as_text(value))
        if found is None or not groups:
            return value
        captured = [found.group(group) for group in groups]
        return captured[0] if len(captured) == 1 else captured

    return capture


def _groups(config: Any, place: str) -> list[int]:
    """`1`, `"1"`, `[1, 2]` or `"[1, 2]"`."""
    parts = config if isinstance(config, list) else str(config).strip().removeprefix("[").removesuffix("]").split(",")
    texts = [str(part).strip() for part in parts]
    if not texts or not all(text.isdecimal() for text in texts):
        raise InvalidRequest(f"{place}.groups must be a number or an array of numbers such as '[1,2,3]'")
    return [int(text) for text in texts]


def _jsonpath_filter(config: _Config, place: str) -> Processor:
    path = compile_path(_required_text(config, "path", place))
    default = config.get("default")

    def read(value: Any) -> Any:
        document = _document(value)
        found = MISSING if document is None else path.read(document.root)
        if found is not MISSING:
            return found
        return value if default is None else default

    return read


def _extract_json(config: _Config, place: str) -> Processor:
    kinds = {"auto": "{[", "object": "{", "array": "["}
    starts = kinds.get(str(config.get("extract_type", "auto")).lower())
    if starts is None:
        raise InvalidRequest(f"{place}.extract_type must be 'auto', 'object', or 'array'")
    default = config.get("default")
    decoder = json.JSONDecoder()

    def extract(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        start = min((at for sign in starts if (at := value.find(sign)) >= 0), default=None)
        if start is not None:
            try:
                return decoder.raw_decode(value, start)[0]
            except json.JSONDecodeError:
                pass
        return value if default is None else default

    return extract


def _remove_jsonpath(config: _Config, place: str) -> Processor:
    """`paths` (3.5 and later), or `path`."""
    paths = config.get("paths", [config["path"]] if "path" in config else None)
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) and path.strip() for path in paths):
        raise InvalidRequest(f"{place}.paths must be an array of JSONPaths")
    compiled = [compile_path(path) for path in paths]

    def strip(value: Any) -> Any:
        document = _document(value)
        if document is None:
            return value
        for path in compiled:
            remove(document, path)
        return document.root

    return strip


def _conditional(config: _Config, place: str) -> Processor:
    path = compile_path(_required_text(config, "path", place)) if config.get("path") else None
    routes = config.get("routes")
    if not isinstance(routes, list) or not routes or not all(isinstance(route, dict) for route in routes):
        raise InvalidRequest(f"{place}.routes must be an array of objects, each a condition with its processors")
    chains = [
        (condition, _chain(config, f"{place}.routes[{index}].{condition}"))
        for index, route in enumerate(routes)
        for condition, config in route.items()
    ]
    for condition, _ in chains:
        check_condition(condition)
    default = _chain(config.get("default", []), f"{place}.default")

    def route(value: Any) -> Any:
        subject = value
        if path is not None:
            document = _document(value)
            subject = None if document is None else path.read(document.root)
        for condition, chain in chains:
            if matches(condition, None if subject is MISSING else subject):
                return process(chain, value)
        return process(default, value)

    return route


def _process_and_set(config: _Config, place: str) -> Processor:
    path = compile_path(_required_text(config, "path", place))
    chain = _nested(config, place)

    def process_and_set(value: Any) -> Any:
        document = _document(value)
        if document is None or not set_value(document, path, process(chain, value)):
            return value
        return document.root

    return process_and_set


def _set_field(config: _Config, place: str) -> Processor:
    path = compile_path(_required_text(config, "path", place))
    if ("value" in config) == ("source_path" in config):
        raise InvalidRequest(f"{place} needs either value or source_path")
    if "default" in config and "source_path" not in config:
        raise InvalidRequest(f"{place}.default can only be used with source_path")
    source = compile_path(_required_text(config, "source_path", place)) if "source_path" in config else None

    def set_field(value: Any) -> Any:
        document = _document(value)
        if document is None:
            return value
        new = config.get("value") if source is None else source.read(document.root)
        if new is MISSING and "default" in config:
            new = config["default"]
        if new is MISSING or not set_value(document, path, new):
            return value
        return document.root

    return set_field


def _for_each(config: _Config, place: str) -> Processor:
    """Each element is replaced where it stands. A path to an array means its elements."""
    path = compile_path(_required_text(config, "path", place))
    chain = _nested(config, place)

    def for_each(value: Any) -> Any:
        document = _document(value)
        if document is None:
            return value
        for found in find(document, path):
            if isinstance(found.value, list) and path.is_definite:
                found.replace([process(chain, element) for element in found.value])
            elif not path.is_definite:
                found.replace(process(chain, found.value))
        return document.root

    return for_each


def _nested(config: _Config, place: str) -> tuple[Processor, ...]:
    chain = _chain(config.get("processors"), f"{place}.processors")
    if not chain:
        raise InvalidRequest(f"{place}.processors must hold at least one processor")
    return chain


_TYPES: Mapping[str, Callable[[_Config, str], Processor]] = {
    "to_string": _to_string,
    "regex_replace": _regex_replace,
    "regex_capture": _regex_capture,
    "jsonpath_filter": _jsonpath_filter,
    "extract_json": _extract_json,
    "remove_jsonpath": _remove_jsonpath,
    "conditional": _conditional,
    "process_and_set": _process_and_set,
    "set_field": _set_field,
    "for_each": _for_each,
}
