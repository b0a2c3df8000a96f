"""Assertions: keywords that look at one value alone. Each compiles to a test of a value; True is good."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.json_schema.evaluation import Evaluation
from opensearch_ml_stream.connectors.syntax.regex import Regex, compile_regex

Test = Callable[[Evaluation, Any], bool]

_MAX_EXPONENT = 400  # of a multipleOf and its value, so that neither becomes an integer of a million digits

_IS_TYPE: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": lambda value: _is_number(value),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
}


class BadKeyword(Exception):
    """The value of a keyword is not what the keyword takes; the message says what it takes."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _type(rule: Any) -> Test:
    names = rule if isinstance(rule, list) else [rule]
    if not names or not all(isinstance(name, str) and name in _IS_TYPE for name in names):
        raise BadKeyword(f"must be one or several of {', '.join(_IS_TYPE)}")
    tests = [_IS_TYPE[name] for name in names]
    if len(tests) == 1:
        is_type = tests[0]
        return lambda run, value: is_type(value)
    return lambda run, value: any(test(value) for test in tests)


def _const(rule: Any) -> Test:
    wanted = comparable(Evaluation(), rule)
    return lambda run, value: comparable(run, value) == wanted


def _enum(rule: Any) -> Test:
    if not isinstance(rule, list):
        raise BadKeyword("must be an array")
    compiling = Evaluation()
    wanted = {comparable(compiling, element) for element in rule}
    return lambda run, value: comparable(run, value) in wanted


def comparable(run: Evaluation, value: Any) -> Any:
    """Return a hashable form of a JSON value, equal for values that JSON Schema calls equal: 1 and 1.0, not 1 and true.

    Takes a step for each value in it.
    """
    form: Any
    if isinstance(value, dict | list):
        run.enter()
        run.spend(len(value))
        if isinstance(value, dict):
            form = (dict, frozenset([(name, comparable(run, element)) for name, element in value.items()]))
        else:
            form = (list, tuple([comparable(run, element) for element in value]))
        run.depth -= 1
        return form
    return (bool, value) if isinstance(value, bool) else value


def _unique_items(rule: Any) -> Test:
    if not isinstance(rule, bool):
        raise BadKeyword("must be true or false")

    def are_unique(run: Evaluation, value: Any) -> bool:
        if not rule or not isinstance(value, list):
            return True
        run.spend(len(value))
        return len({comparable(run, element) for element in value}) == len(value)

    return are_unique


def _multiple_of(rule: Any) -> Test:
    if not _is_number(rule) or rule <= 0:
        raise BadKeyword("must be a number greater than 0")
    divisor = _fraction(rule)
    if divisor is None:
        raise BadKeyword(f"must be between 1e-{_MAX_EXPONENT} and 1e{_MAX_EXPONENT}")

    def is_multiple(run: Evaluation, value: Any) -> bool:
        if not _is_number(value):
            return True
        run.spend(10)
        number = _fraction(value)
        return number is not None and (number / divisor).denominator == 1

    return is_multiple


def _fraction(number: int | float) -> Fraction | None:
    """Return the exact value of a number as it is written in decimal, None if it is too large for that."""
    if isinstance(number, int):
        return Fraction(number) if number.bit_length() <= 4 * _MAX_EXPONENT else None
    return Fraction(repr(number)) if number - number == 0 else None


def _limit(is_good: Callable[[Any, Any], bool]) -> Callable[[Any], Test]:
    def compile_limit(rule: Any) -> Test:
        if not _is_number(rule):
            raise BadKeyword("must be a number")
        return lambda run, value: not _is_number(value) or is_good(value, rule)

    return compile_limit


def _size(
    kind: type[str] | type[list[Any]] | type[dict[str, Any]], is_good: Callable[[int, int], bool]
) -> Callable[[Any], Test]:
    def compile_size(rule: Any) -> Test:
        size = count(rule)
        return lambda run, value: not isinstance(value, kind) or is_good(len(value), size)

    return compile_size


def count(rule: Any) -> int:
    """Return the value of a keyword that counts. BadKeyword if it is not an integer of 0 or more."""
    if not _is_number(rule) or rule < 0 or rule != rule // 1:
        raise BadKeyword("must be an integer of 0 or more")
    return int(rule)


def _pattern(rule: Any) -> Test:
    search = searcher(rule)
    return lambda run, value: not isinstance(value, str) or search(run, value)


def compile_pattern(pattern: str) -> Regex:
    """Compile a pattern of a schema. BadKeyword if RE2 does not take it."""
    try:
        return compile_regex(pattern, has_groups=False)
    except InvalidRequest as error:
        raise BadKeyword(error.reason) from None


def searcher(pattern: Any) -> Callable[[Evaluation, str], bool]:
    """Return a search for a pattern in a text. BadKeyword if it is not a pattern for RE2."""
    if not isinstance(pattern, str):
        raise BadKeyword("must be a string")
    regex = compile_pattern(pattern)

    def search(run: Evaluation, text: str) -> bool:
        run.spend(4 + regex.search_steps(text))
        return regex.search(text) is not None

    return search


def strings(rule: Any) -> list[str]:
    """Return the value of a keyword that names properties. BadKeyword if it is not an array of strings."""
    if not isinstance(rule, list) or not all(isinstance(name, str) for name in rule):
        raise BadKeyword("must be an array of strings")
    return rule


def _required(rule: Any) -> Test:
    names = strings(rule)

    def has_all(run: Evaluation, value: Any) -> bool:
        if not isinstance(value, dict):
            return True
        run.spend(1 + len(names) // 8)
        return all(name in value for name in names)

    return has_all


def _dependent_required(rule: Any) -> Test:
    if not isinstance(rule, dict):
        raise BadKeyword("must be an object")
    tests = {name: _required(names) for name, names in rule.items()}

    def has_all(run: Evaluation, value: Any) -> bool:
        if not isinstance(value, dict):
            return True
        run.spend(1 + len(tests) // 8)
        return all(test(run, value) for name, test in tests.items() if name in value)

    return has_all


ASSERTIONS: Mapping[str, Callable[[Any], Test]] = {
    "type": _type,
    "const": _const,
    "enum": _enum,
    "multipleOf": _multiple_of,
    "maximum": _limit(lambda value, limit: value <= limit),
    "minimum": _limit(lambda value, limit: value >= limit),
    "exclusiveMaximum": _limit(lambda value, limit: value < limit),
    "exclusiveMinimum": _limit(lambda value, limit: value > limit),
    "maxLength": _size(str, lambda size, limit: size <= limit),
    "minLength": _size(str, lambda size, limit: size >= limit),
    "maxItems": _size(list, lambda size, limit: size <= limit),
    "minItems": _size(list, lambda size, limit: size >= limit),
    "maxProperties": _size(dict, lambda size, limit: size <= limit),
    "minProperties": _size(dict, lambda size, limit: size >= limit),
    "uniqueItems": _unique_items,
    "pattern": _pattern,
    "required": _required,
    "dependentRequired": _dependent_required,
}
