"""JSON text as OpenSearch reads it, without losing what the caller wrote.

OpenSearch's parser takes `//` and `/* */` comments and refuses a key given twice. Values that are passed on to a
provider keep their own text, so that `0.0001` does not become `1.0E-4`: a `JsonText` is such a text.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from opensearch_ml_stream.connectors.errors import InvalidRequest

_MAX_DIGITS = 1000  # as the parser of OpenSearch (Jackson) has it
_BLANK = re.compile(r"[ \t\n\r]*")
# Unrolled: `(?:[^"\\]|\\.)*` would keep a state for every character of a long text.
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
# What is not closed reaches to the end; were it no match, each of a million `/*` would be looked for to the end.
_COMMENT_OR_STRING = re.compile(rf"{_STRING}?|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_BLANK_OR_STRING = re.compile(rf"({_STRING})|\s+", re.DOTALL)


class JsonText(str):
    """The JSON text of a value that is not a string: a number, true, null, an array, an object."""

    __slots__ = ()


def decode(data: bytes) -> str:
    """The body as text without comments; InvalidRequest if it is not UTF-8."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The request body is not UTF-8 at byte {error.start}", type="parse_exception") from None
    return strip_comments(text)


def strip_comments(text: str) -> str:
    if "//" not in text and "/*" not in text:
        return text
    return _COMMENT_OR_STRING.sub(lambda found: found[0] if found[0][0] == '"' else " ", text)


def loads(data: bytes) -> Any:
    """The value of a request body; InvalidRequest (line and column, never the text) if it is not JSON."""
    text, _ = _start(data)
    return _decoded(_DECODER.decode, text)


def load_object(data: bytes) -> dict[str, Any]:
    """The JSON object that a body begins with, for every route that takes one.

    What follows it is not looked at: ML Commons reads up to the object's last brace, and public blueprints have one
    brace too many.
    """
    text, start = _start(data)
    if text[start] != "{":
        loads(data)
        raise InvalidRequest("The request body must be a JSON object", type="parse_exception")
    value: dict[str, Any] = _decoded(_DECODER.raw_decode, text, start)[0]
    return value


def _start(data: bytes) -> tuple[str, int]:
    """The text, and where its first value begins."""
    text = decode(data)
    start = _skip(text, 0)
    if start == len(text):
        raise InvalidRequest("request body is required", type="parse_exception")
    return text, start


def _decoded(decode: Callable[..., Any], text: str, *start: int) -> Any:
    try:
        return decode(text, *start)
    except json.JSONDecodeError as error:
        raise not_json(error) from None
    except RecursionError:
        raise too_deep() from None


def too_deep() -> InvalidRequest:
    return InvalidRequest("The request body is nested too deeply", type="json_parse_exception")


def not_json(error: json.JSONDecodeError) -> InvalidRequest:
    at_end = error.pos >= len(error.doc.rstrip())
    return InvalidRequest(
        f"The request body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
        type="json_e_o_f_exception" if at_end else "json_parse_exception",
    )


def is_json(text: str) -> bool:
    """Whether the whole text is one JSON value, by the strict grammar (RFC 8259)."""
    try:
        _DECODER.decode(text)
    except (json.JSONDecodeError, InvalidRequest, RecursionError):
        return False
    return True


def dumps(value: Any) -> str:
    """Compact JSON; non-ASCII as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def escape(text: str) -> str:
    """The text as it stands between the quotes of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def compact(text: str) -> str:
    """JSON text without the blanks between its tokens."""
    return _BLANK_OR_STRING.sub(lambda found: found[1] or "", text)


def members(text: str) -> list[tuple[str, str]]:
    """Each key of a JSON object with the text of its value; json.JSONDecodeError if it is no object."""
    return list(_members(text))


def set_members(text: str, values: dict[str, Any], drop: tuple[str, ...] = ()) -> str:
    """The JSON object `text` with `values` in place of, or added to, its own; the others keep their text."""
    kept = [f"{dumps(key)}:{value}" for key, value in _members(text) if key not in values and key not in drop]
    return "{" + ",".join([*kept, *(f"{dumps(key)}:{dumps(value)}" for key, value in values.items())]) + "}"


def parameter(text: str) -> str:
    """A parameter's value from its JSON text: a string's content as `str`, anything else as `JsonText`."""
    return str(json.loads(text)) if text.startswith('"') else JsonText(text)


def parameter_of(value: Any) -> str:
    """As `parameter`, for a value that is parsed already (numbers in Python's notation)."""
    return value if isinstance(value, str) else JsonText(dumps(value))


def _members(text: str) -> Iterator[tuple[str, str]]:
    position = _skip(text, 0)
    if text[position : position + 1] != "{":
        raise json.JSONDecodeError("Expecting an object", text, position)
    position = _skip(text, position + 1)
    if text[position : position + 1] == "}":
        _expect_end(text, position + 1)
        return
    while True:
        if text[position : position + 1] != '"':
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, position)
        key, position = _DECODER.raw_decode(text, position)
        position = _skip(text, position)
        if text[position : position + 1] != ":":
            raise json.JSONDecodeError("Expecting ':' delimiter", text, position)
        start = _skip(text, position + 1)
        _, end = _DECODER.raw_decode(text, start)
        yield key, text[start:end]
        position = _skip(text, end)
        separator = text[position : position + 1]
        if separator == "}":
            _expect_end(text, position + 1)
            return
        if separator != ",":
            raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
        position = _skip(text, position + 1)


def _skip(text: str, position: int) -> int:
    found = _BLANK.match(text, position)
    return found.end() if found else position


def _expect_end(text: str, position: int) -> None:
    end = _skip(text, position)
    if end != len(text):
        raise json.JSONDecodeError("Extra data", text, end)


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise InvalidRequest(f"Duplicate field '{twice}'", type="json_parse_exception")
    return value


def _no_constant(name: str) -> NoReturn:
    raise InvalidRequest(f"{name} is not a JSON number", type="json_parse_exception")


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:  # Python refuses more, since reading them takes quadratic time
        raise InvalidRequest(f"A number has more than {_MAX_DIGITS} digits", type="json_parse_exception")
    return int(text)


_DECODER = json.JSONDecoder(object_pairs_hook=_no_key_twice, parse_constant=_no_constant, parse_int=_integer)
