"""Conditions of the `conditional` processor: check their syntax, and match JSON values against them.

A condition is one of: exists, null, not_exists, >10, <10, >=10, <=10, ==10, regex:pattern, contains:text, or a value
that the JSON value must equal.
"""

import operator
from collections.abc import Callable
from typing import Any

from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.regex import compile_regex

_TOLERANCE = 1e-10  # of `==` between numbers
_COMPARISONS: tuple[tuple[str, Callable[[float, float], bool]], ...] = (
    (">=", operator.ge),
    ("<=", operator.le),
    ("==", lambda left, right: abs(left - right) < _TOLERANCE),
    (">", operator.gt),
    ("<", operator.lt),
)


def check_condition(condition: str) -> None:
    """Raise InvalidRequest if the condition is a regular expression that RE2 does not take."""
    if condition.startswith("regex:"):
        compile_regex(condition.removeprefix("regex:"))


def matches(condition: str, value: Any) -> bool:
    """Return whether a JSON value meets the condition. Null and an empty array count as absent."""
    if value is None or value == []:
        return condition in ("null", "not_exists")
    if condition == "exists":
        return True
    text = jsontext.to_text(value)
    if condition == text:
        return True
    for sign, compare in _COMPARISONS:
        if condition.startswith(sign):
            left, right = _number(text), _number(condition[len(sign) :])
            return left is not None and right is not None and compare(left, right)
    if condition.startswith("regex:"):
        return compile_regex(condition.removeprefix("regex:")).fullmatch(text) is not None
    return condition.startswith("contains:") and condition.removeprefix("contains:") in text


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
