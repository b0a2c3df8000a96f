"""JSON text as OpenSearch reads it, without losing what the caller wrote.

OpenSearch's parser takes `//` and `/* */` comments and refuses a key given twice. Values that are passed on to a
provider keep their own text, so that `0.0001` does not become `1.0E-4`: a `JsonText` is such a text.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn

from opensearch_ml_stream.connectors.errors import InvalidRequest

_MAX_DIGITS = 1000  # as the parser of OpenSearch (Jackson) has it
_BYTE_ORDER_MARK = "\ufeff"
_BLANK = re.compile(r"[ \t\n\r]*")
# Possessive, and unrolled: anything else keeps a state for every character or escape of a long text.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# The tokens around an object's values; a `{` takes its `}` along if the object is empty.
_BEGIN = re.compile(r"[ \t\n\r]*\{[ \t\n\r]*(\})?")
_KEY = re.compile(r'[ \t\n\r]*+("[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+")[ \t\n\r]*+:[ \t\n\r]*+')
_NEXT = re.compile(r"[ \t\n\r]*([,}])")
# What is not closed reaches to the end; were it no match, each of a million `/*` would be looked for to the end.
_COMMENT_OR_STRING = re.compile(rf"{_STRING}?|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_BLANK_OR_STRING = re.compile(rf"({_STRING})|\s+", re.DOTALL)


class JsonText(str):
    """The JSON text of a value that is not a string: a number, true, null, an array, an object."""

    __slots__ = ()


def decode(data: bytes) -> str:
    """The body as text without comments; InvalidRequest if it is not UTF-8."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The request body is not UTF-8 at byte {error.start}", type="parse_exception") from None
    return strip_comments(text.removeprefix(_BYTE_ORDER_MARK))


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


def _given_twice(name: str) -> InvalidRequest:
    return InvalidRequest(f"Duplicate field '{name}'", type="json_parse_exception")


def is_json(text: str) -> bool:
    """Whether the whole text is one JSON value, by the strict grammar (RFC 8259)."""
    try:
        _DECODER.decode(text)
    except (json.JSONDecodeError, InvalidRequest, RecursionError):
        return False
    return True


def dumps(value: Any) -> str:
    """Compact JSON; non-ASCII as it is."""
    return _ENCODER.encode(value)


def escape(text: str) -> str:
    """The text as it stands between the quotes of a JSON string."""
    return _ENCODER.encode(text)[1:-1]


def compact(text: str) -> str:
    """JSON text without the blanks between its tokens."""
    return _BLANK_OR_STRING.sub(lambda found: found[1] or "", text)


def members(text: str) -> list[tuple[str, str]]:
    """Each key of a JSON object with the text of its value; json.JSONDecodeError if it is no object."""
    begin = _BEGIN.match(text)
    if begin is None:
        raise json.JSONDecodeError("Expecting an object", text, _skip(text, 0))
    found: list[tuple[str, str]] = []
    position, more = begin.end(), begin[1] is None
    while more:
        key = _KEY.match(text, position)
        if key is None:
            raise _syntax_error(text)
        if "\\" in key[1]:
            _DECODER.raw_decode(text, key.start(1))  # raises if the escape is none
        start = key.end()
        _, end = _DECODER.raw_decode(text, start)
        found.append((_string(key[1]), text[start:end]))
        after = _NEXT.match(text, end)
        if after is None:
            raise _syntax_error(text)
        position, more = after.end(), after[1] == ","
    if _skip(text, position) != len(text):
        raise json.JSONDecodeError("Extra data", text, _skip(text, position))
    return found


def unique_members(text: str) -> dict[str, str]:
    """As `members`; InvalidRequest for a key given twice."""
    found: dict[str, str] = {}
    for name, value in members(text):
        if name in found:
            raise _given_twice(name)
        found[name] = value
    return found


def object_of(texts: Mapping[str, str]) -> str:
    """The JSON object of these names and texts of values."""
    return "{" + ",".join([f"{dumps(name)}:{value}" for name, value in texts.items()]) + "}"


def set_members(text: str, values: Mapping[str, Any], drop: Collection[str] = ()) -> str:
    """The JSON object `text` with `values` in place of, or added to, its own; the other values keep their text.

    json.JSONDecodeError or InvalidRequest if it is no object that OpenSearch would take.
    """
    kept = {name: value for name, value in unique_members(text).items() if name not in values and name not in drop}
    return object_of(kept | {name: dumps(value) for name, value in values.items()})


def parameter(text: str) -> str:
    """A parameter's value from its JSON text: a string's content as `str`, anything else as `JsonText`."""
    return _string(text) if text.startswith('"') else JsonText(text)


def parameter_of(value: Any) -> str:
    """As `parameter`, for a value that is parsed already (numbers in Python's notation)."""
    return value if isinstance(value, str) else JsonText(dumps(value))


def _string(text: str) -> str:
    """The content of a string's JSON text."""
    if "\\" not in text and text.isprintable():
        return text[1:-1]
    return str(json.loads(text))


def _syntax_error(text: str) -> json.JSONDecodeError:
    """What the parser says of a text that is no JSON object."""
    try:
        _DECODER.decode(text)
    except json.JSONDecodeError as error:
        return error
    return json.JSONDecodeError("Expecting an object", text, 0)


def _skip(text: str, position: int) -> int:
    found = _BLANK.match(text, position)
    return found.end() if found else position


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise _given_twice(twice)
    return value


def _no_constant(name: str) -> NoReturn:
    raise InvalidRequest(f"{name} is not a JSON number", type="json_parse_exception")


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:  # Python refuses more, since reading them takes quadratic time
        raise InvalidRequest(f"A number has more than {_MAX_DIGITS} digits", type="json_parse_exception")
    return int(text)


_DECODER = json.JSONDecoder(object_pairs_hook=_no_key_twice, parse_constant=_no_constant, parse_int=_integer)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
