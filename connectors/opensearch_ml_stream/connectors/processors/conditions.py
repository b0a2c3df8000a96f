"""Conditions of the `conditional` processor: compile them, and match JSON values against them.

A condition is one of: exists, null, not_exists, >10, <10, >=10, <=10, ==10, regex:pattern, contains:text, or a value
that the JSON value must equal.
"""

import operator
from collections.abc import Callable

from opensearch_ml_stream.connectors.syntax.regex import Regex, compile_regex
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
    """Compile a condition. InvalidRequest if it is a regular expression that RE2 does not take."""
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
