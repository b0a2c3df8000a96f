"""Comparisons and functions of JSONPath filters (RFC 9535, 2.3.5 and 2.4), with `in`, `contains` and `=~` of Jayway.

Values may be large and nested to any depth, so that comparing them is counted by a work limit and not recursive.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, Literal

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.regex import Regex, compile_regex
from opensearch_ml_stream.connectors.syntax.work_limit import WorkLimit

CONTAINERS = (dict, list)
_CHARS_A_STEP = 1_000  # of strings that are compared


class _Missing(Enum):
    MISSING = "missing"


MISSING: Final = _Missing.MISSING
Missing = Literal[_Missing.MISSING]

Comparison = Callable[[Any, Any, WorkLimit], bool]


def equal(left: Any, right: Any, work: WorkLimit) -> bool:
    """Return whether two JSON values are equal; `true` does not equal 1. MISSING equals itself only."""
    pairs = [(left, right)]
    while pairs:
        left, right = pairs.pop()
        work.spend(1 + _size(left))
        if isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            pairs.extend(zip(left, right, strict=True))
        elif isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False
            pairs.extend((left[name], right[name]) for name in left)
        elif isinstance(left, bool) != isinstance(right, bool) or left != right:
            return False
    return True


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value) // _CHARS_A_STEP
    return len(value) if isinstance(value, CONTAINERS) else 0


def _less(left: Any, right: Any, work: WorkLimit) -> bool:
    """Return whether one string or number is less than another; other values are not ordered."""
    if isinstance(left, str) and isinstance(right, str):
        work.spend(1 + _size(left))
        return left < right
    return _is_number(left) and _is_number(right) and bool(left < right)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_in(left: Any, right: Any, work: WorkLimit) -> bool:
    if isinstance(right, list):
        return any(equal(left, item, work) for item in right)
    if not isinstance(left, str):
        return False
    if isinstance(right, str):
        work.spend(1 + len(right) // _CHARS_A_STEP)
    return isinstance(right, dict | str) and left in right


COMPARISONS: dict[str, Comparison] = {
    "==": equal,
    "!=": lambda left, right, work: not equal(left, right, work),
    "<>": lambda left, right, work: not equal(left, right, work),
    "<": _less,
    ">": lambda left, right, work: _less(right, left, work),
    "<=": lambda left, right, work: _less(left, right, work) or equal(left, right, work),
    ">=": lambda left, right, work: _less(right, left, work) or equal(left, right, work),
    "in": _is_in,
    "contains": lambda left, right, work: _is_in(right, left, work),
}


def length(value: Any) -> Any:
    """Return the length of a string, array or object, MISSING for other values."""
    return len(value) if isinstance(value, str | list | dict) else MISSING


def matches(regex: Regex, value: Any, work: WorkLimit, *, whole: bool) -> bool:
    """Return whether the value is a string that the regular expression matches, the whole string or a part of it."""
    if not isinstance(value, str):
        return False
    work.spend(4 + regex.steps(value))
    return (regex.fullmatch(value) if whole else regex.search(value)) is not None


def matches_pattern(pattern: Any, value: Any, work: WorkLimit, *, whole: bool) -> bool:
    """Return what `matches` does for a pattern that is read from the document; one that is wrong matches nothing."""
    if not isinstance(pattern, str):
        return False
    work.spend(100 + len(pattern))
    try:
        regex = compile_regex(pattern)
    except InvalidRequest:
        return False
    work.spend(regex.compile_steps)
    return matches(regex, value, work, whole=whole)
