"""The functions that may end a JSONPath, by the rules of Jayway's library: `$.scores.max()`, `$.texts.concat("!")`.

What cannot be computed, such as the average of nothing, is MISSING.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.jsonpath_values import CONTAINERS, MISSING, is_number
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
