"""Turns what a field is given into what it holds, by the field's type, and says what is wrong where that cannot be.

As MLServer's types do it: numbers from digits, text from UTF-8, a list from any collection, None where it is allowed.
"""

import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

Coerce = Callable[[Any], Any]
_TRUE = frozenset({"1", "on", "t", "true", "y", "yes"})
_FALSE = frozenset({"0", "off", "f", "false", "n", "no"})


class Problem(NamedTuple):
    """What is wrong with one value, and where it is."""

    place: tuple[str | int, ...]
    kind: str
    message: str
    value: object


class ValidationError(ValueError):
    """Values do not fit their fields; `errors()` says which."""

    def __init__(self, problems: list[Problem], title: str = "") -> None:
        super().__init__(title, problems)
        self.problems = problems
        self.title = title

    def errors(self) -> list[dict[str, Any]]:
        """List the problems, each with `type`, `loc`, `msg` and `input`."""
        return [
            {"type": kind, "loc": place, "msg": message, "input": value}
            for place, kind, message, value in self.problems
        ]

    def error_count(self) -> int:
        """Count the problems."""
        return len(self.problems)

    def __str__(self) -> str:
        count = len(self.problems)
        lines = [f"{count} validation error{'s' if count != 1 else ''} for {self.title}"]
        for place, kind, message, value in self.problems:
            if place:
                lines.append(".".join(map(str, place)))
            lines.append(f"  {message} [type={kind}, input_value={_short(value)}, input_type={type(value).__name__}]")
        return "\n".join(lines)


def wrong(kind: str, message: str, value: object) -> ValidationError:
    """Make the error of one value, whose place is not known yet."""
    return ValidationError([Problem((), kind, message, value)])


def inside(place: str | int, error: ValidationError) -> list[Problem]:
    """List the problems of a value that lies at `place` of another."""
    return [Problem((place, *problem.place), *problem[1:]) for problem in error.problems]


def coercion_of(hint: Any) -> Coerce:
    """Find what turns values into a field's type; values of types that it does not know pass as they are."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return coercion_of(arguments[1])  # what it is made of, where the field holds another type
    if origin is list:
        return _list_of(coercion_of(arguments[0]), passing(arguments[0]))
    if origin is dict:
        return mapping
    if origin in (types.UnionType, typing.Union):
        return _any_of([coercion_of(argument) for argument in arguments])
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _member_of(hint)
    return _instance_of(hint) if hasattr(hint, "model_validate") else anything


def passing(hint: Any) -> Any:
    """Find the type whose instances a field takes as they are; None where it looks at each value."""
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return passing(typing.get_args(hint)[0])
    if origin is not None or not isinstance(hint, type) or issubclass(hint, (Enum, list, dict)):
        return None
    return hint


def text(value: Any) -> str:
    """Take text, or its bytes in UTF-8."""
    if type(value) is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes | bytearray):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise wrong("string_unicode", "Input should be a valid string, not valid UTF-8", value) from None
    raise wrong("string_type", "Input should be a valid string", value)


def integer(value: Any) -> int:
    """Take a whole number, or its digits."""
    if type(value) is int:
        return value
    if isinstance(value, str | bytes):
        try:
            return int(value)
        except ValueError:
            message = "Input should be a valid integer, unable to parse string as an integer"
            raise wrong("int_parsing", message, value) from None
    number = _float(value)
    if number is None:
        raise wrong("int_type", "Input should be a valid integer", value)
    if not math.isfinite(number):
        raise wrong("finite_number", "Input should be a finite number", value)
    if number != int(number):
        raise wrong("int_from_float", "Input should be a valid integer, got a number with a fractional part", value)
    return int(value)


def number(value: Any) -> float:
    """Take a number, or its digits."""
    if isinstance(value, str | bytes):
        try:
            return float(value)
        except ValueError:
            message = "Input should be a valid number, unable to parse string as a number"
            raise wrong("float_parsing", message, value) from None
    result = _float(value)
    if result is None:
        raise wrong("float_type", "Input should be a valid number", value)
    return result


def boolean(value: Any) -> bool:
    """Take True or False, 1 or 0, or a word for either."""
    if type(value) is bool:
        return value
    if isinstance(value, str | bytes):
        word = (value if isinstance(value, str) else value.decode(errors="replace")).lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
    elif _float(value) in (0.0, 1.0):
        return bool(value)
    elif _float(value) is None:
        raise wrong("bool_type", "Input should be a valid boolean", value)
    raise wrong("bool_parsing", "Input should be a valid boolean, unable to interpret input", value)


def mapping(value: Any) -> dict[Any, Any]:
    """Take a mapping, as a dictionary of its own."""
    if isinstance(value, Mapping):
        return dict(value)
    raise wrong("dict_type", "Input should be a valid dictionary", value)


def anything(value: Any) -> Any:
    """Take what comes."""
    return value


def _nothing(value: Any) -> None:
    if value is not None:
        raise wrong("none_required", "Input should be None", value)


_PLAIN: dict[Any, Coerce] = {
    str: text,
    int: integer,
    float: number,
    bool: boolean,
    dict: mapping,
    Any: anything,
    type(None): _nothing,
}


def _float(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _list_of(item: Coerce, exact: Any) -> Coerce:
    """Take a collection of what `item` takes, as a list of its own; instances of `exact` pass as they are."""

    def coerce(value: Any) -> list[Any]:
        if type(value) is list:
            for element in value:
                if type(element) is not exact:
                    break
            else:
                return value[:]
        else:
            if not isinstance(value, Iterable) or isinstance(value, str | bytes | bytearray | Mapping):
                raise wrong("list_type", "Input should be a valid list", value)
            value = list(value)
        try:
            return [item(element) for element in value]
        except ValidationError:
            raise ValidationError(_problems_of(value, item)) from None

    return coerce


def _problems_of(values: list[Any], item: Coerce) -> list[Problem]:
    problems: list[Problem] = []
    for position, value in enumerate(values):
        try:
            item(value)
        except ValidationError as error:
            problems += inside(position, error)
    return problems


def _any_of(choices: list[Coerce]) -> Coerce:
    """Take what the first of the choices takes; None is one of them where the field may be empty."""
    others = [choice for choice in choices if choice is not _nothing]
    if len(others) == 1 and len(choices) == 2:
        only = others[0]
        return lambda value: None if value is None else only(value)

    def coerce(value: Any) -> Any:
        for choice in choices[:-1]:
            try:
                return choice(value)
            except ValidationError:
                continue
        return choices[-1](value)

    return coerce


def _member_of(members: type[Enum]) -> Coerce:
    """Take a member of an enumeration, or its value; what the field holds is the value."""
    values = {member.value for member in members}
    names = [repr(member.value) for member in members]
    expected = f"Input should be {', '.join(names[:-1])} or {names[-1]}"

    def coerce(value: Any) -> Any:
        if isinstance(value, str) and value in values:
            return value
        if isinstance(value, members):
            return value.value
        raise wrong("enum", expected, value)

    return coerce


def _instance_of(expected: type[Any]) -> Coerce:
    """Take an instance, or what one can be made of."""
    validate: Coerce = expected.model_validate

    def coerce(value: Any) -> Any:
        return value if type(value) is expected else validate(value)

    return coerce


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 50 else f"{shown[:25]}...{shown[-24:]}"
