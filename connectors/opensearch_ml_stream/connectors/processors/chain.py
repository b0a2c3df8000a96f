"""Compile `input_processors` and `output_processors`, and run them on a JSON value.

The parameter is a JSON array of `{"type": ..., ...}`, the processor types and their options are ML Commons'. The
configuration is checked when it is compiled. A processor that does not fit a value at run time (a JSONPath that leads
nowhere, a pattern that does not match) leaves it as it is. Where a processor reads a document, a string counts as the
JSON text that it holds.

One work limit holds for a whole run, so that neither time nor output can grow with each processor.
"""

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError
from opensearch_ml_stream.connectors.processors.document_processors import (
    jsonpath_filter,
    remove_jsonpath,
    set_field,
    set_value,
)
from opensearch_ml_stream.connectors.processors.processing import Config, Processing, Processor, required_string
from opensearch_ml_stream.connectors.processors.text_processors import (
    compile_pattern,
    extract_json,
    regex_capture,
    regex_replace,
    to_string,
)
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.jsonpath import MAX_PATTERNS, MISSING, compile_path, count_patterns
from opensearch_ml_stream.connectors.syntax.regex import PatternLimit, Regex, compile_regex
from opensearch_ml_stream.connectors.syntax.work_limit import WorkLimit

_TOLERANCE = 1e-10  # of `==` between numbers
_MAX_NUMBER_CHARS = 1_000  # longer text is no number
_COMPARISONS: tuple[tuple[str, Callable[[float, float], bool]], ...] = (
    (">=", operator.ge),
    ("<=", operator.le),
    ("==", lambda left, right: abs(left - right) < _TOLERANCE),
    (">", operator.gt),
    ("<", operator.lt),
)

Condition = Callable[[str | None, WorkLimit], bool]
"""Says whether a value meets it, given as text; None stands for null, an empty array, and what is absent."""


def compile_condition(condition: str) -> Condition:
    """Compile a condition of the `conditional` processor. InvalidRequest for a regular expression that RE2 refuses.

    A condition is one of: exists, null, not_exists, >10, <10, >=10, <=10, ==10, regex:pattern, contains:text, or a
    value that the JSON value must equal.
    """
    if condition in ("null", "not_exists"):
        return lambda text, work: text is None or text == condition
    if condition == "exists":
        return lambda text, work: text is not None
    other = _other_condition(condition)

    def matches(text: str | None, work: WorkLimit) -> bool:
        return text is not None and (text == condition or other(text, work))

    return matches


def condition_regex(condition: str) -> Regex | None:
    """Return the regular expression of a condition that is one. InvalidRequest if RE2 does not take it."""
    return compile_regex(condition.removeprefix("regex:")) if condition.startswith("regex:") else None


def _other_condition(condition: str) -> Callable[[str, WorkLimit], bool]:
    for sign, compare in _COMPARISONS:
        if condition.startswith(sign):
            return _comparison(compare, _number(condition[len(sign) :]))
    if (regex := condition_regex(condition)) is not None:

        def matches(text: str, work: WorkLimit) -> bool:
            work.spend(regex.steps(text))
            return regex.fullmatch(text) is not None

        return matches
    if condition.startswith("contains:"):
        part = condition.removeprefix("contains:")

        def contains(text: str, work: WorkLimit) -> bool:
            work.spend_on_text(text)
            return part in text

        return contains
    return lambda text, work: False


def _comparison(compare: Callable[[float, float], bool], right: float | None) -> Callable[[str, WorkLimit], bool]:
    def matches(text: str, work: WorkLimit) -> bool:
        work.spend(1)
        left = _number(text)
        return left is not None and right is not None and compare(left, right)

    return matches


def _number(text: str) -> float | None:
    try:
        return float(text) if len(text) <= _MAX_NUMBER_CHARS else None
    except ValueError:
        return None


MAX_CONFIG_CHARS = 100_000  # configurations come from callers and are kept compiled
MAX_CONFIG_VALUES = 1_000  # objects, arrays, strings, ... in a configuration
MAX_PATHS_CHARS = 5_000  # of all JSONPaths in a configuration, which take the longest to compile
MAX_CONFIG_DEPTH = 40  # of a configuration's JSON; a processor within another is two deeper


class Processors:
    """A compiled chain, of the parameter `name`."""

    __slots__ = ("_chain", "_name")

    def __init__(self, chain: Sequence[Processor], name: str) -> None:
        self._chain = chain
        self._name = name

    def run(self, value: Any, characters: int, error: type[MLStreamError] = InvalidRequest) -> Any:
        """Run the processors in order, each on the result of the one before it. The value itself is not changed.

        `characters` is the size of the input that the value comes from. `error` is raised beyond the work that is
        allowed for that size: UpstreamError for a provider's response.
        """
        return _run(self._chain, value, Processing(WorkLimit(self._name, characters, error)))

    def run_on_text(self, text: str) -> str:
        """Run the processors on the text of a request body and return the result as text."""
        return jsontext.to_text(self.run(text, len(text)))


def compile_processors(text: str, name: str) -> Processors:
    """Compile the processors of the parameter `name`.

    InvalidRequest names the JSON path of what is wrong, such as `output_processors[1].path`.
    """
    if len(text) > MAX_CONFIG_CHARS:
        raise InvalidRequest(f"{name} may have {MAX_CONFIG_CHARS} characters; these are {len(text)}")
    return _compile(text, name)


@lru_cache(maxsize=256)
def _compile(text: str, name: str) -> Processors:
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"{name} is not JSON: {jsontext.describe(error)}") from None
    except RecursionError:
        raise InvalidRequest(f"{name} may be nested {MAX_CONFIG_DEPTH} deep") from None
    except ValueError:
        raise InvalidRequest(f"{name} has a number of thousands of digits") from None
    _check_size(config, name)
    return Processors(_chain(config, name), name)


def _check_size(config: Any, name: str) -> None:
    values, paths, patterns, level, depth = 0, 0, 0, [config], 0
    limit = PatternLimit(name)
    while level:
        values, depth = values + len(level), depth + 1
        if values > MAX_CONFIG_VALUES:
            raise InvalidRequest(f"{name} may have {MAX_CONFIG_VALUES} values; use fewer processors and paths")
        if depth > MAX_CONFIG_DEPTH:
            raise InvalidRequest(f"{name} may be nested {MAX_CONFIG_DEPTH} deep")
        objects = [value for value in level if isinstance(value, dict)]
        found = [path for value in objects for path in _paths(value)]
        paths, patterns = paths + sum(map(len, found)), patterns + sum(map(count_patterns, found))
        if paths > MAX_PATHS_CHARS:
            raise InvalidRequest(f"The JSONPaths of {name} may have {MAX_PATHS_CHARS} characters together")
        if patterns > MAX_PATTERNS:
            raise InvalidRequest(f"The JSONPaths of {name} may have {MAX_PATTERNS} regular expressions together")
        for value in objects:
            _spend_on_patterns(value, limit)
        containers = [value for value in level if isinstance(value, dict | list)]
        level = [inner for value in containers for inner in (value.values() if isinstance(value, dict) else value)]


def _paths(config: Config) -> list[str]:
    several = config.get("paths")
    paths = [config.get("path"), config.get("source_path"), *(several if isinstance(several, list) else ())]
    return [path for path in paths if isinstance(path, str)]


def _spend_on_patterns(config: Config, limit: PatternLimit) -> None:
    """Compile the regular expressions of a processor within the limit; its function finds them compiled."""
    if _TYPES.get(str(config.get("type"))) in (regex_replace, regex_capture) and isinstance(config.get("pattern"), str):
        limit.spend(compile_pattern(config["pattern"]))
    routes = config.get("routes")
    for route in routes if isinstance(routes, list) else ():
        for condition in route if isinstance(route, dict) else ():
            if (regex := condition_regex(condition)) is not None:
                limit.spend(regex)


def _run(chain: Sequence[Processor], value: Any, processing: Processing) -> Any:
    for processor in chain:
        processing.work.spend(1)
        value = processor(value, processing)
    return value


def _chain(config: Any, config_path: str) -> tuple[Processor, ...]:
    entries = [config] if isinstance(config, dict) else config
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidRequest(f"{config_path} must be an array of objects, each with a type")
    return tuple(_processor(entry, f"{config_path}[{index}]") for index, entry in enumerate(entries))


def _processor(config: Config, config_path: str) -> Processor:
    compile_type = _TYPES.get(str(config.get("type")))
    if compile_type is None:
        raise InvalidRequest(f"{config_path}.type must be one of {', '.join(_TYPES)}")
    return compile_type(config, config_path)


def _conditional(config: Config, config_path: str) -> Processor:
    path = compile_path(required_string(config, "path", config_path)) if config.get("path") else None
    routes = config.get("routes")
    if not isinstance(routes, list) or not routes or not all(isinstance(route, dict) for route in routes):
        raise InvalidRequest(f"{config_path}.routes must be an array of objects, each a condition with its processors")
    chains = [
        (compile_condition(condition), _chain(config, f"{config_path}.routes[{index}].{condition}"))
        for index, route in enumerate(routes)
        for condition, config in route.items()
    ]
    default = _chain(config.get("default", []), f"{config_path}.default")

    def route(value: Any, processing: Processing) -> Any:
        subject = value
        if path is not None:
            document = processing.parse(value)
            subject = MISSING if document is MISSING else path.read(document, processing.work)
        absent = subject is None or subject is MISSING or subject == []
        text = None if absent else processing.text(subject)
        for matches, chain in chains:
            processing.work.spend(1)
            if matches(text, processing.work):
                return _run(chain, value, processing)
        return _run(default, value, processing)

    return route


def _process_and_set(config: Config, config_path: str) -> Processor:
    path = compile_path(required_string(config, "path", config_path))
    chain = _nested(config, config_path)

    def process_and_set(value: Any, processing: Processing) -> Any:
        document = processing.document(value)
        processing.give_away()
        if document is None or not set_value(document, path, _run(chain, value, processing), processing):
            return value
        return processing.keep(document)

    return process_and_set


def _for_each(config: Config, config_path: str) -> Processor:
    """Compile a processor that replaces each match of `path` in place; a path to one array means its elements."""
    path = compile_path(required_string(config, "path", config_path))
    chain = _nested(config, config_path)

    def for_each(value: Any, processing: Processing) -> Any:
        document = processing.document(value)
        processing.give_away()
        if document is None:
            return value
        for node in path.find_nodes(document.root, processing.work):
            if isinstance(node.value, list) and path.is_definite:
                document.replace(node, [_run(chain, element, processing) for element in node.value])
            elif not path.is_definite:
                document.replace(node, _run(chain, node.value, processing))
        processing.give_away()
        return document.root

    return for_each


def _nested(config: Config, config_path: str) -> tuple[Processor, ...]:
    chain = _chain(config.get("processors"), f"{config_path}.processors")
    if not chain:
        raise InvalidRequest(f"{config_path}.processors must hold at least one processor")
    return chain


_TYPES: Mapping[str, Callable[[Config, str], Processor]] = {
    "to_string": to_string,
    "regex_replace": regex_replace,
    "regex_capture": regex_capture,
    "jsonpath_filter": jsonpath_filter,
    "extract_json": extract_json,
    "remove_jsonpath": remove_jsonpath,
    "conditional": _conditional,
    "process_and_set": _process_and_set,
    "set_field": set_field,
    "for_each": _for_each,
}
