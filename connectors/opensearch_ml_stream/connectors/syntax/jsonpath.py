"""JSONPath (RFC 9535): compile a path once, read values and find nodes with it, by Jayway's rules as ML Commons does.

A definite path (names and indexes only) reads the value, any other path the list of values. Several names at a path's
end read an object with them, and a function at its end (`$.l.length()`) is computed for each value, or for all that a
path which begins with `$..` finds. A path whose definite prefix leads nowhere reads MISSING, even if the rest of it
would give a list. Paths of names, indexes and wildcards are
walked here, in time linear in the document; all others under a work limit (`jsonpath_query.py`). The library
python-jsonpath only parses. Regular expressions in a path run on RE2, since callers write them and Python's own may
take exponential time.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

import jsonpath
from jsonpath.lex import Lexer
from jsonpath.parse import Parser
from jsonpath.segments import JSONPathChildSegment
from jsonpath.selectors import IndexSelector, NameSelector, WildcardSelector

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.jsonpath_query import (
    MAX_NESTING,
    Evaluation,
    Node,
    Query,
    compile_query,
    compile_reading,
    evaluate,
    may_overlap,
    names_at_end,
    spend_on_values,
    too_nested,
)
from opensearch_ml_stream.connectors.syntax.jsonpath_values import CONTAINERS, MISSING, WORDS, Missing, is_number
from opensearch_ml_stream.connectors.syntax.work_limit import WorkLimit

MAX_FUNCTIONS = 10  # in a path, those of their arguments included
_ITEMS_A_STEP = 8

Function = Callable[[Any, Sequence[Any], WorkLimit], Any]
"""Value, values of the arguments, work -> value or MISSING."""


class Call(NamedTuple):
    """A function in a path, the texts of its arguments, and what of the path follows it."""

    name: str
    arguments: tuple[str, ...]
    rest: str


def split_calls(source: str) -> tuple[str, list[Call]]:
    """Return what of a path comes before its first function, and its functions. InvalidRequest if there are too many.

    Functions may end a path, by the rules of Jayway's library: `$.scores.max()`, `$.texts.concat("!")`. What cannot be
    computed, such as the average of nothing, is MISSING.

    A function that is not closed is left to the path's parser.
    """
    head = source
    calls: list[Call] = []
    names = list(_find_functions(source))
    if len(names) > MAX_FUNCTIONS:
        raise InvalidRequest(f"A JSONPath may have {MAX_FUNCTIONS} functions")
    position = 0
    for name in names:
        if name.start() < position:
            continue  # in the arguments of the one before
        ends = _argument_ends(source, name.end())
        if not ends:
            return source, []
        if calls:
            calls[-1] = calls[-1]._replace(rest=source[position : name.start()])
        else:
            head = source[: name.start()]
        starts = (name.end(), *(end + 1 for end in ends[:-1]))
        arguments = tuple(source[start:end].strip() for start, end in zip(starts, ends, strict=True))
        position = ends[-1] + 1
        calls.append(Call(name["name"], arguments, source[position:]))
    return head, calls


def _find_functions(source: str) -> Iterator[re.Match[str]]:
    """Return the beginnings of functions that stand outside of brackets and quotes."""
    depth = 0
    for token in _TOKENS.finditer(source):
        depth += _DEPTHS.get(token[0], 0)
        if token["name"] and not depth:
            yield token


def _argument_ends(source: str, start: int) -> list[int]:
    """Return where the arguments that begin at `start` end, the last one at the closing parenthesis."""
    ends: list[int] = []
    depth = 0
    for token in _TOKENS.finditer(source, start):
        if not depth and token[0] in ",)":
            ends.append(token.start())
            if token[0] == ")":
                return ends
        depth += _DEPTHS.get(token[0], 0) + bool(token["name"]) - (token[0] == ")") + (token[0] == "(")
    return []


def _numbers(value: Any, arguments: Sequence[Any], work: WorkLimit) -> list[float]:
    parts = [value] if isinstance(value, list) else []
    numbers: list[float] = []
    for part in (*parts, *arguments):
        items = part if isinstance(part, list) else [part]
        work.spend(1 + len(items) // _ITEMS_A_STEP)
        numbers += [float(item) for item in items if is_number(item)]
    return numbers


def _of_numbers(compute: Callable[[Sequence[float]], float]) -> Function:
    def function(value: Any, arguments: Sequence[Any], work: WorkLimit) -> Any:
        try:
            numbers = _numbers(value, arguments, work)
            result = compute(numbers) if numbers else math.nan
        except OverflowError:
            return MISSING
        return result if math.isfinite(result) else MISSING

    return function


def _deviation(numbers: Sequence[float]) -> float:
    count, total = len(numbers), sum(numbers)
    squares = sum(number * number for number in numbers)
    return math.sqrt(max(0.0, squares / count - total * total / count / count))


def _length(value: Any, arguments: Sequence[Any], work: WorkLimit) -> Any:
    if arguments and isinstance(arguments[0], list):
        value = arguments[0]
    return len(value) if isinstance(value, CONTAINERS) else None


def _keys(value: Any, arguments: Sequence[Any], work: WorkLimit) -> Any:
    if not isinstance(value, dict):
        return None
    work.spend(1 + len(value) // _ITEMS_A_STEP)
    return list(value)


def _item(value: Any, index: int) -> Any:
    return value[index] if isinstance(value, list) and -len(value) <= index < len(value) else MISSING


def _index(value: Any, arguments: Sequence[Any], work: WorkLimit) -> Any:
    numbers = [argument for argument in arguments if is_number(argument)]
    return _item(value, int(numbers[0])) if numbers else MISSING


def _append(value: Any, arguments: Sequence[Any], work: WorkLimit) -> Any:
    if not isinstance(value, list):
        return value
    work.spend(1 + len(value))
    return [*value, *arguments]


def _concatenate(value: Any, arguments: Sequence[Any], work: WorkLimit) -> str:
    parts = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
    for argument in arguments:
        parts += [_text(item) for item in (argument if isinstance(argument, list) else [argument])]
    text = "".join(parts)
    work.spend(1 + len(parts))
    work.spend_on_text(text)
    return text


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else ""


FUNCTIONS: dict[str, Function] = {
    "length": _length,
    "size": _length,
    "max": _of_numbers(max),
    "min": _of_numbers(min),
    "sum": _of_numbers(sum),
    "avg": _of_numbers(lambda numbers: sum(numbers) / len(numbers)),
    "stddev": _of_numbers(_deviation),
    "keys": _keys,
    "first": lambda value, arguments, work: _item(value, 0),
    "last": lambda value, arguments, work: _item(value, -1),
    "index": _index,
    "append": _append,
    "concat": _concatenate,
}

_TOKENS = re.compile(
    r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|=~\s*/(?:[^/\\]|\\.)*/|\.(?P<name>"""
    + "|".join(FUNCTIONS)
    + r")\(|[\[\](){},]",
    re.DOTALL,
)
_DEPTHS = {"[": 1, "{": 1, "]": -1, "}": -1}


__all__ = ["MAX_PATH_CHARS", "MAX_PATTERNS", "MISSING", "JSONPath", "Missing", "Node", "compile_path", "count_patterns"]

MAX_PATH_CHARS = 2_000  # paths come from callers and are kept compiled
MAX_PATTERNS = 10  # regular expressions in a path: one takes up to 7 ms to compile


class _Wildcard(Enum):
    EVERY = "*"


_ARGUMENT_STARTS = '$@{"-0123456789'  # Jayway passes over what begins otherwise
_Token = str | int | _Wildcard  # a name, an index, or every element


_Step = Callable[[Any, Any, WorkLimit], Any]
"""A function and the names after it: value, root, work -> value or MISSING."""


@dataclass(frozen=True, slots=True)
class JSONPath:
    """A compiled path.

    `tokens` is None for a path with more than names, indexes and wildcards. `prefix` holds the names and indexes before
    the first token that can match more than one value. `_query` finds nodes, `_reading` the values that are read, and
    `_steps` compute with each of them, or with all of them `_at_once`.
    """

    source: str
    tokens: tuple[_Token, ...] | None
    prefix: tuple[_Token, ...]
    is_definite: bool
    _query: Query
    _reading: Query
    _steps: tuple[_Step, ...] = ()
    _at_once: bool = False

    def read(self, document: Any, work: WorkLimit | None = None) -> Any | Missing:
        """Return the value, the list of values, or MISSING. Values are parts of the document, not copies.

        The limit's error if it takes too much work; without one that of a small input.
        """
        start = _descend(document, self.prefix)
        if start is MISSING:
            return MISSING
        if self.tokens is not None:
            return start if self.is_definite else _collect(start, self.tokens[len(self.prefix) :])
        work = self._or_default(work)
        values = self._evaluate(document, start, work)
        for step in self._steps:
            values = [result for value in values if (result := step(value, document, work)) is not MISSING]
        if self.is_definite:
            return values[0] if values else MISSING
        return values

    def _evaluate(self, document: Any, start: Any, work: WorkLimit) -> list[Any]:
        rest = self._reading[len(self.prefix) :]
        values = [node.value for node in evaluate(rest, start, Evaluation(document, work))]
        if may_overlap(rest):
            spend_on_values(values, work)
        return [values] if self._at_once else values

    def rows(self, document: Any) -> list[Any] | None:
        """Return the array whose elements a path that finds several values goes through first, None if it is none."""
        start = None if self.is_definite else _descend(document, self.prefix)
        return start if isinstance(start, list) else None

    def select(self, document: Any, work: WorkLimit | None = None) -> list[Any]:
        """Return the matched values as a list, empty if the path matches nothing."""
        result = self.read(document, work)
        if result is MISSING:
            return []
        return [result] if self.is_definite else list(result)

    def find_nodes(self, document: Any, work: WorkLimit | None = None) -> list[Node]:
        """Return the matched values with the arrays and objects that hold them, for edits in place.

        InvalidRequest for a path with a function.
        """
        if self._steps:
            raise InvalidRequest(f"The JSONPath [{self.source}] ends in a function, which is no place in a document")
        return evaluate(self._query, document, Evaluation(document, self._or_default(work)))

    def _or_default(self, work: WorkLimit | None) -> WorkLimit:
        return WorkLimit(f"The JSONPath [{self.source}]") if work is None else work


def compile_path(source: str) -> JSONPath:
    """Compile a path. InvalidRequest if it is too long or not a JSONPath."""
    if len(source) > MAX_PATH_CHARS:
        raise InvalidRequest(f"A JSONPath may have {MAX_PATH_CHARS} characters; this one has {len(source)}")
    if count_patterns(source) > MAX_PATTERNS:
        raise InvalidRequest(f"A JSONPath may have {MAX_PATTERNS} regular expressions")
    return _compile(source)


def count_patterns(source: str) -> int:
    """Return how many regular expressions a path has, at most."""
    return source.count("=~") + source.count("match(") + source.count("search(")


@lru_cache(maxsize=512)
def _compile(source: str) -> JSONPath:
    head, calls = split_calls(source.strip())
    if head.startswith("@"):
        head = f"${head[1:]}"  # at the beginning both are the document
    at_once = bool(calls) and head.startswith("$..")
    if at_once and calls[0].name in ("length", "size"):
        head += ".*"  # as Jayway, which counts what the found arrays and objects hold
    path = _parse(head)
    tokens: list[_Token | None] = [_token(segment) for segment in path.segments]
    prefix: list[_Token] = []
    for token in tokens:
        if token is None or token is _Wildcard.EVERY:
            break
        prefix.append(token)
    plain = tuple(token for token in tokens if token is not None)
    is_child_of_prefix = len(prefix) == len(tokens) - 1 and isinstance(path.segments[-1], JSONPathChildSegment)
    return JSONPath(
        source,
        tokens=plain if len(plain) == len(tokens) and not calls else None,
        prefix=tuple(prefix),
        is_definite=at_once or len(prefix) == len(tokens) or (is_child_of_prefix and bool(names_at_end(path))),
        _query=compile_query(path),
        _reading=compile_reading(path),
        _steps=tuple(step for call in calls for step in _steps(call)),
        _at_once=at_once,
    )


def _steps(call: Call) -> Iterator[_Step]:
    """Return what computes a call, and what goes on from its result."""
    function = FUNCTIONS[call.name]
    arguments = [_argument(text) for text in call.arguments if text[:1] in _ARGUMENT_STARTS and text]

    def compute(value: Any, root: Any, work: WorkLimit) -> Any:
        values = [argument(root, work) for argument in arguments]
        return MISSING if MISSING in values else function(value, values, work)

    yield compute
    if call.rest:
        rest = compile_path(f"${call.rest}")
        if not rest.is_definite:
            raise InvalidRequest("Behind a function a JSONPath goes on with names and indexes alone")
        yield lambda value, root, work: rest.read(value, work)


def _argument(text: str) -> Callable[[Any, WorkLimit], Any]:
    """Return what gives an argument's value for a root: of a path, or of JSON."""
    if text[0] in "$@":
        return compile_path(text).read
    try:
        json.loads(text)
    except ValueError:
        raise InvalidRequest(f"JSONPath: the argument [{text}] of a function is neither a path nor JSON") from None
    return lambda root, work: json.loads(text)  # each time, as what is read may be edited


def _parse(source: str) -> jsonpath.JSONPath:
    if _count_nested_brackets(source) > MAX_NESTING + 1:  # the library's time is quadratic in the nesting of filters
        raise too_nested()
    try:
        path = _ENVIRONMENT.compile(source)
    except RecursionError:
        raise too_nested() from None
    except (jsonpath.JSONPathError, re.error, OverflowError, ValueError) as error:  # `/(/`, 1e400 or 1e+3 as an index
        reason = error.args[0] if error.args else "it cannot be parsed"
        raise InvalidRequest(f"[{source}] is not a JSONPath that is understood here: {reason}") from None
    if not isinstance(path, jsonpath.JSONPath):
        raise InvalidRequest(f"[{source}] joins several JSONPaths; give one")
    return path


def _count_nested_brackets(source: str) -> int:
    depth = deepest = 0
    for character in source:
        if character == "[":
            depth += 1
            deepest = max(deepest, depth)
        elif character == "]":
            depth -= 1
    return deepest


def _token(segment: Any) -> _Token | None:
    """Return the token of a plain segment, None for any other."""
    if not isinstance(segment, JSONPathChildSegment) or len(segment.selectors) != 1:
        return None
    selector = segment.selectors[0]
    if isinstance(selector, NameSelector):
        return selector.name
    if isinstance(selector, IndexSelector):
        return selector.index
    return _Wildcard.EVERY if isinstance(selector, WildcardSelector) else None


def _descend(value: Any, tokens: Sequence[_Token]) -> Any | Missing:
    for token in tokens:
        if isinstance(token, str):
            if not isinstance(value, dict) or token not in value:
                return MISSING
            value = value[token]
        elif isinstance(token, int):
            if not isinstance(value, list) or not -len(value) <= token < len(value):
                return MISSING
            value = value[token]
    return value


def _collect(value: Any, tokens: Sequence[_Token]) -> list[Any]:
    values = [value]
    for token in tokens:
        if token is _Wildcard.EVERY:
            values = [inner for outer in values for inner in _children(outer)]
        else:
            inner_values = [_descend(outer, (token,)) for outer in values]
            values = [inner for inner in inner_values if inner is not MISSING]
    return values


def _children(value: Any) -> Sequence[Any]:
    if isinstance(value, list):
        return value
    return list(value.values()) if isinstance(value, dict) else ()


class _Lexer(Lexer):
    """The library's lexer, which knows Jayway's operators in words as well."""

    def compile_rules(self) -> re.Pattern[str]:
        rules = super().compile_rules()
        words = "|".join(rf"(?P<{_token_kind(word)}>(?<=\s){word}(?=[\s\['\"]))" for word in WORDS)
        return re.compile(f"{words}|{rules.pattern}", rules.flags)


def _token_kind(word: str) -> str:
    return f"JAYWAY_{word.upper()}"


class _Parser(Parser):
    """The library's parser, with the same operators."""

    PRECEDENCES = Parser.PRECEDENCES | {_token_kind(word): Parser.PRECEDENCE_MEMBERSHIP for word in WORDS}
    BINARY_OPERATORS = Parser.BINARY_OPERATORS | {_token_kind(word): word for word in WORDS}
    INFIX_LITERAL_OPERATORS = Parser.INFIX_LITERAL_OPERATORS | WORDS.keys()


class _Environment(jsonpath.JSONPathEnvironment):
    """The library's environment with the functions of RFC 9535 and the operators of Jayway alone."""

    lexer_class = _Lexer
    parser_class = _Parser

    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        for name in self.function_extensions.keys() - {"length", "count", "match", "search", "value"}:
            del self.function_extensions[name]


_ENVIRONMENT = _Environment()
