"""Compile `input_processors` and `output_processors`, and run them on a JSON value.

The parameter is a JSON array of `{"type": ..., ...}`, the processor types and their options are ML Commons'. The
configuration is checked when it is compiled. A processor that does not fit a value at run time (a JSONPath that leads
nowhere, a pattern that does not match) leaves it as it is. Where a processor reads a document, a string counts as the
JSON text that it holds.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.processors.conditions import check_condition, matches
from opensearch_ml_stream.connectors.processors.json_edit import Document, find_nodes, remove, set_value
from opensearch_ml_stream.connectors.processors.replacement import compile_replacement
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.jsonpath import MISSING, compile_path
from opensearch_ml_stream.connectors.syntax.regex import compile_regex

MAX_CONFIG_CHARS = 100_000  # configurations come from callers and are kept compiled

Processor = Callable[[Any], Any]
_Config = Mapping[str, Any]


def process(processors: Sequence[Processor], value: Any) -> Any:
    """Run the processors in order, each on the result of the one before it."""
    for processor in processors:
        value = processor(value)
    return value


def process_text(processors: Sequence[Processor], text: str) -> str:
    """Run the processors on the text of a request body and return the result as text."""
    return jsontext.to_text(process(processors, text))


def compile_processors(text: str, name: str) -> tuple[Processor, ...]:
    """Compile the processors of the parameter `name`.

    InvalidRequest names the JSON path of what is wrong, such as `output_processors[1].path`.
    """
    if len(text) > MAX_CONFIG_CHARS:
        raise InvalidRequest(f"{name} may have {MAX_CONFIG_CHARS} characters; these are {len(text)}")
    return _compile(text, name)


@lru_cache(maxsize=256)
def _compile(text: str, name: str) -> tuple[Processor, ...]:
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"{name} is not JSON: {jsontext.describe(error)}") from None
    return _chain(config, name)


def _chain(config: Any, config_path: str) -> tuple[Processor, ...]:
    entries = [config] if isinstance(config, dict) else config
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidRequest(f"{config_path} must be an array of objects, each with a type")
    return tuple(_processor(entry, f"{config_path}[{index}]") for index, entry in enumerate(entries))


def _processor(config: _Config, config_path: str) -> Processor:
    compile_type = _TYPES.get(str(config.get("type")))
    if compile_type is None:
        raise InvalidRequest(f"{config_path}.type must be one of {', '.join(_TYPES)}")
    return compile_type(config, config_path)


def _required_string(config: _Config, key: str, config_path: str) -> str:
    value = config.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InvalidRequest(f"{config_path}.{key} must be a string that is not empty")
    return value


def _document(value: Any) -> Document | None:
    """Return a copy of the value for edits in place, None if it is a string that is not JSON."""
    try:
        return Document(json.loads(jsontext.to_text(value)))
    except json.JSONDecodeError:
        return None


def _to_string(config: _Config, config_path: str) -> Processor:
    if config.get("escape_json") is True:
        return lambda value: jsontext.escape(jsontext.to_text(value))
    return jsontext.to_text


def _regex_replace(config: _Config, config_path: str) -> Processor:
    pattern = compile_regex(_required_string(config, "pattern", config_path), dot_all=True)
    replacement = compile_replacement(str(config.get("replacement", "")), pattern.groups, f"{config_path}.replacement")
    count = 0 if config.get("replace_all", True) is True else 1
    return lambda value: pattern.sub(replacement, jsontext.to_text(value), count)


def _regex_capture(config: _Config, config_path: str) -> Processor:
    pattern = compile_regex(_required_string(config, "pattern", config_path), dot_all=True)
    groups = [group for group in _groups(config.get("groups", "1"), config_path) if group <= pattern.groups]

    def capture(value: Any) -> Any:
        match = pattern.search(jsontext.to_text(value))
        if match is None or not groups:
            return value
        captured = [match.group(group) for group in groups]
        return captured[0] if len(captured) == 1 else captured

    return capture


def _groups(config: Any, config_path: str) -> list[int]:
    """Return the group numbers of `1`, `"1"`, `[1, 2]` or `"[1, 2]"`."""
    parts = config if isinstance(config, list) else str(config).strip().removeprefix("[").removesuffix("]").split(",")
    numbers = [str(part).strip() for part in parts]
    if not numbers or not all(number.isdecimal() for number in numbers):
        raise InvalidRequest(f"{config_path}.groups must be a number or an array of numbers such as '[1,2,3]'")
    return [int(number) for number in numbers]


def _jsonpath_filter(config: _Config, config_path: str) -> Processor:
    path = compile_path(_required_string(config, "path", config_path))
    default = config.get("default")

    def read(value: Any) -> Any:
        document = _document(value)
        result = MISSING if document is None else path.read(document.root)
        if result is not MISSING:
            return result
        return value if default is None else default

    return read


def _extract_json(config: _Config, config_path: str) -> Processor:
    openings_by_type = {"auto": "{[", "object": "{", "array": "["}
    openings = openings_by_type.get(str(config.get("extract_type", "auto")).lower())
    if openings is None:
        raise InvalidRequest(f"{config_path}.extract_type must be 'auto', 'object', or 'array'")
    default = config.get("default")
    decoder = json.JSONDecoder()

    def extract(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        start = min((at for opening in openings if (at := value.find(opening)) >= 0), default=None)
        if start is not None:
            try:
                return decoder.raw_decode(value, start)[0]
            except json.JSONDecodeError:
                pass
        return value if default is None else default

    return extract


def _remove_jsonpath(config: _Config, config_path: str) -> Processor:
    """Compile a processor with `paths`, as ML Commons 3.5 and later has it, or `path`."""
    paths = config.get("paths", [config["path"]] if "path" in config else None)
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) and path.strip() for path in paths):
        raise InvalidRequest(f"{config_path}.paths must be an array of JSONPaths")
    compiled = [compile_path(path) for path in paths]

    def strip(value: Any) -> Any:
        document = _document(value)
        if document is None:
            return value
        for path in compiled:
            remove(document, path)
        return document.root

    return strip


def _conditional(config: _Config, config_path: str) -> Processor:
    path = compile_path(_required_string(config, "path", config_path)) if config.get("path") else None
    routes = config.get("routes")
    if not isinstance(routes, list) or not routes or not all(isinstance(route, dict) for route in routes):
        raise InvalidRequest(f"{config_path}.routes must be an array of objects, each a condition with its processors")
    chains = [
        (condition, _chain(config, f"{config_path}.routes[{index}].{condition}"))
        for index, route in enumerate(routes)
        for condition, config in route.items()
    ]
    for condition, _ in chains:
        check_condition(condition)
    default = _chain(config.get("default", []), f"{config_path}.default")

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


def _process_and_set(config: _Config, config_path: str) -> Processor:
    path = compile_path(_required_string(config, "path", config_path))
    chain = _nested(config, config_path)

    def process_and_set(value: Any) -> Any:
        document = _document(value)
        if document is None or not set_value(document, path, process(chain, value)):
            return value
        return document.root

    return process_and_set


def _set_field(config: _Config, config_path: str) -> Processor:
    path = compile_path(_required_string(config, "path", config_path))
    if ("value" in config) == ("source_path" in config):
        raise InvalidRequest(f"{config_path} needs either value or source_path")
    if "default" in config and "source_path" not in config:
        raise InvalidRequest(f"{config_path}.default can only be used with source_path")
    source = compile_path(_required_string(config, "source_path", config_path)) if "source_path" in config else None

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


def _for_each(config: _Config, config_path: str) -> Processor:
    """Compile a processor that replaces each match of `path` in place; a path to one array means its elements."""
    path = compile_path(_required_string(config, "path", config_path))
    chain = _nested(config, config_path)

    def for_each(value: Any) -> Any:
        document = _document(value)
        if document is None:
            return value
        for node in find_nodes(document, path):
            if isinstance(node.value, list) and path.is_definite:
                node.replace([process(chain, element) for element in node.value])
            elif not path.is_definite:
                node.replace(process(chain, node.value))
        return document.root

    return for_each


def _nested(config: _Config, config_path: str) -> tuple[Processor, ...]:
    chain = _chain(config.get("processors"), f"{config_path}.processors")
    if not chain:
        raise InvalidRequest(f"{config_path}.processors must hold at least one processor")
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
