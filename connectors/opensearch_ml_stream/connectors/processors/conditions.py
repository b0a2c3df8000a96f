"""Conditions of the `conditional` processor.

exists   null   not_exists   >10   <10   >=10   <=10   ==10   regex:pattern   contains:text   a value itself
"""

import operator
from collections.abc import Callable
from typing import Any

from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.regex import compile_regex

_NEARLY = 1e-10
_COMPARISONS: tuple[tuple[str, Callable[[float, float], bool]], ...] = (
    (">=", operator.ge),
    ("<=", operator.le),
    ("==", lambda left, right: abs(left - right) < _NEARLY),
    (">", operator.gt),
    ("<", operator.lt),
)


def check_condition(condition: str) -> None:
    """InvalidRequest if the condition is a regular expression that cannot be used."""
    if condition.startswith("regex:"):
        compile_regex(condition.removeprefix("regex:"))


def matches(condition: str, value: Any) -> bool:
    """Whether a JSON value fulfils the condition; null and an empty list count as absent."""
    if value is None or value == []:
        return condition in ("null", "not_exists")
    if condition == "exists":
        return True
    text = value if isinstance(value, str) else jsontext.dumps(value)
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
