"""Comparisons and functions of JSONPath filters (RFC 9535, 2.3.5 and 2.4), with the operators of Jayway in words.

Values may be large and nested to any depth, so that comparing them is counted by a work limit and not recursive.
"""

from collections.abc import Callable, Iterator
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
    return is_number(left) and is_number(right) and bool(left < right)


def is_number(value: Any) -> bool:
    """Return whether the value is a JSON number, which `true` is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_in(left: Any, right: Any, work: WorkLimit) -> bool:
    if isinstance(right, list):
        return any(equal(left, item, work) for item in right)
    if not isinstance(left, str):
        return False
    if isinstance(right, str):
        work.spend(1 + len(right) // _CHARS_A_STEP)
    return isinstance(right, dict | str) and left in right


def _is_among(left: Any, right: Any, work: WorkLimit) -> bool:
    """Return whether the right side, an array, has the left one."""
    return isinstance(right, list) and any(equal(left, item, work) for item in right)


def _shared(left: Any, right: Any, work: WorkLimit) -> Iterator[bool] | None:
    """Return for each item of the left side whether the right one has it; None if they are not both arrays."""
    if not isinstance(left, list) or not isinstance(right, list):
        return None
    return (_is_among(item, right, work) for item in left)


def _has_size(left: Any, right: Any, work: WorkLimit) -> bool:
    return isinstance(left, str | list) and is_number(right) and len(left) == int(right)


def _is_empty(left: Any, right: Any, work: WorkLimit) -> bool:
    return isinstance(left, str | list | dict) and isinstance(right, bool) and (not left) == right


def _is_subset(left: Any, right: Any, work: WorkLimit) -> bool:
    return (shared := _shared(left, right, work)) is not None and all(shared)


def _has_any(left: Any, right: Any, work: WorkLimit) -> bool:
    return (shared := _shared(left, right, work)) is not None and any(shared)


def _has_none(left: Any, right: Any, work: WorkLimit) -> bool:
    return (shared := _shared(left, right, work)) is not None and not any(shared)


WORDS: dict[str, Comparison] = {
    "nin": lambda left, right, work: not _is_among(left, right, work),
    "all": lambda left, right, work: _is_subset(right, left, work),
    "size": _has_size,
    "empty": _is_empty,
    "subsetof": _is_subset,
    "anyof": _has_any,
    "noneof": _has_none,
}
"""The operators in words that only Jayway has."""

COMPARISONS: dict[str, Comparison] = {
    **WORDS,
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
