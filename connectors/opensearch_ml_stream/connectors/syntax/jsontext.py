"""JSON text: parse request bodies as OpenSearch does, and edit JSON objects without rewriting their other values.

OpenSearch's parser takes `//` and `/* */` comments and refuses duplicate keys. A value that is passed on to a provider
keeps the text that the caller wrote, so that `0.0001` does not become `1.0E-4`: it is a `JsonText`.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn

from opensearch_ml_stream.connectors.errors import InvalidRequest

_MAX_DIGITS = 1000  # of a number, the limit of OpenSearch's parser (Jackson)
_BYTE_ORDER_MARK = "\ufeff"
_BLANK = re.compile(r"[ \t\n\r]*")
# Possessive and unrolled: any other form keeps a backtracking state for every character or escape of a long text.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# The tokens around an object's values. `_BEGIN` includes the `}` of an empty object.
_BEGIN = re.compile(r"[ \t\n\r]*\{[ \t\n\r]*(\})?")
_KEY = re.compile(r'[ \t\n\r]*+("[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+")[ \t\n\r]*+:[ \t\n\r]*+')
_NEXT = re.compile(r"[ \t\n\r]*([,}])")
# An unclosed string or comment matches up to the end: without a match, each of a million `/*` would be searched again.
_COMMENT_OR_STRING = re.compile(rf"{_STRING}?|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_BLANK_OR_STRING = re.compile(rf"({_STRING})|\s+", re.DOTALL)


class JsonText(str):
    """JSON text of a value that is not a string: a number, true, false, null, an array, an object."""

    __slots__ = ()


def decode(data: bytes) -> str:
    """Decode a request body and strip its comments. InvalidRequest if it is not UTF-8."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The request body is not UTF-8 at byte {error.start}", type="parse_exception") from None
    return strip_comments(text.removeprefix(_BYTE_ORDER_MARK))


def strip_comments(text: str) -> str:
    """Replace each `//` and `/* */` comment outside of strings by a blank."""
    if "//" not in text and "/*" not in text:
        return text
    return _COMMENT_OR_STRING.sub(lambda match: match[0] if match[0][0] == '"' else " ", text)


def loads(data: bytes) -> Any:
    """Parse a request body. InvalidRequest (with line and column, never the text) if it is not JSON."""
    text, _ = _find_value(data)
    return _parse(_DECODER.decode, text)


def load_object(data: bytes) -> dict[str, Any]:
    """Parse the JSON object that a request body begins with, for every route that takes an object.

    What follows the object is ignored: ML Commons reads up to the object's last brace, and some public blueprints have
    one brace too many. InvalidRequest if the body does not begin with a JSON object.
    """
    text, start = _find_value(data)
    if text[start] != "{":
        loads(data)
        raise InvalidRequest("The request body must be a JSON object", type="parse_exception")
    value: dict[str, Any] = _parse(_DECODER.raw_decode, text, start)[0]
    return value


def _find_value(data: bytes) -> tuple[str, int]:
    """Return the text of a body and the position of its value. InvalidRequest if the body is blank."""
    text = decode(data)
    start = _skip_blanks(text, 0)
    if start == len(text):
        raise InvalidRequest("request body is required", type="parse_exception")
    return text, start


def _parse(parse: Callable[..., Any], text: str, *start: int) -> Any:
    try:
        return parse(text, *start)
    except json.JSONDecodeError as error:
        raise not_json(error) from None
    except RecursionError:
        raise too_deep() from None


def too_deep() -> InvalidRequest:
    """Return the error for a body whose nesting exceeds Python's recursion limit."""
    return InvalidRequest("The request body is nested too deeply", type="json_parse_exception")


def not_json(error: json.JSONDecodeError) -> InvalidRequest:
    """Return the error for a body that is not JSON, with OpenSearch's exception type for it."""
    at_end = error.pos >= len(error.doc.rstrip())
    return InvalidRequest(
        f"The request body is not JSON: {describe(error)}",
        type="json_e_o_f_exception" if at_end else "json_parse_exception",
    )


def describe(error: json.JSONDecodeError) -> str:
    """Return what is wrong and where, such as "Expecting value at line 1, column 1", without any of the text."""
    return f"{error.msg} at line {error.lineno}, column {error.colno}"


def _duplicate_key(name: str) -> InvalidRequest:
    return InvalidRequest(f"Duplicate field '{name}'", type="json_parse_exception")


def is_json(text: str) -> bool:
    """Return whether the whole text is one JSON value by the strict grammar (RFC 8259)."""
    try:
        _DECODER.decode(text)
    except (json.JSONDecodeError, InvalidRequest, RecursionError):
        return False
    return True


def is_container(text: str) -> bool:
    """Return whether the whole text is a JSON object or array."""
    return text.lstrip().startswith(("{", "[")) and is_json(text)


def dumps(value: Any) -> str:
    """Encode a value as compact JSON, with non-ASCII characters as they are."""
    return _ENCODER.encode(value)


def to_text(value: Any) -> str:
    """Return a string as it is, any other value as compact JSON."""
    return value if isinstance(value, str) else dumps(value)


def escape(text: str) -> str:
    """Escape text for use between the quotes of a JSON string."""
    return _ENCODER.encode(text)[1:-1]


def compact(text: str) -> str:
    """Remove the blanks between the tokens of JSON text."""
    return _BLANK_OR_STRING.sub(lambda match: match[1] or "", text)


def split_members(text: str) -> list[tuple[str, str]]:
    """Return each key of a JSON object with the JSON text of its value. json.JSONDecodeError if it is no object."""
    begin = _BEGIN.match(text)
    if begin is None:
        raise json.JSONDecodeError("Expecting an object", text, _skip_blanks(text, 0))
    pairs: list[tuple[str, str]] = []
    position, more = begin.end(), begin[1] is None
    while more:
        key = _KEY.match(text, position)
        if key is None:
            raise _syntax_error(text)
        if "\\" in key[1]:
            _DECODER.raw_decode(text, key.start(1))  # raises if the escape is not valid
        start = key.end()
        _, end = _DECODER.raw_decode(text, start)
        pairs.append((_parse_string(key[1]), text[start:end]))
        after = _NEXT.match(text, end)
        if after is None:
            raise _syntax_error(text)
        position, more = after.end(), after[1] == ","
    if _skip_blanks(text, position) != len(text):
        raise json.JSONDecodeError("Extra data", text, _skip_blanks(text, position))
    return pairs


def split_unique_members(text: str) -> dict[str, str]:
    """Return the members of a JSON object as `split_members` does. InvalidRequest for a duplicate key."""
    members: dict[str, str] = {}
    for name, value in split_members(text):
        if name in members:
            raise _duplicate_key(name)
        members[name] = value
    return members


def join_members(members: Mapping[str, str]) -> str:
    """Return the JSON object with these names and JSON texts of values."""
    return "{" + ",".join([f"{dumps(name)}:{value}" for name, value in members.items()]) + "}"


def set_members(text: str, values: Mapping[str, Any], drop: Collection[str] = ()) -> str:
    """Return the JSON object `text` with `values` set and the names of `drop` removed; other values keep their text.

    json.JSONDecodeError or InvalidRequest if `text` is no object that OpenSearch would take.
    """
    members = split_unique_members(text)
    kept = {name: value for name, value in members.items() if name not in values and name not in drop}
    return join_members(kept | {name: dumps(value) for name, value in values.items()})


def parse_parameter(text: str) -> str:
    """Return a parameter's value from its JSON text: the content of a string as `str`, anything else as `JsonText`."""
    return _parse_string(text) if text.startswith('"') else JsonText(text)


def to_parameter(value: Any) -> str:
    """Return a parsed value as a parameter: a string as `str`, anything else as `JsonText` in Python's notation."""
    return value if isinstance(value, str) else JsonText(dumps(value))


def _parse_string(text: str) -> str:
    if "\\" not in text and text.isprintable():
        return text[1:-1]
    return str(json.loads(text))


def _syntax_error(text: str) -> json.JSONDecodeError:
    """Return the parser's error for a text that is no JSON object."""
    try:
        _DECODER.decode(text)
    except json.JSONDecodeError as error:
        return error
    return json.JSONDecodeError("Expecting an object", text, 0)


def _skip_blanks(text: str, position: int) -> int:
    blanks = _BLANK.match(text, position)
    return blanks.end() if blanks else position


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        duplicate = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise _duplicate_key(duplicate)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidRequest(f"{name} is not a JSON number", type="json_parse_exception")


def _parse_integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:  # Python refuses more of them too: parsing takes quadratic time
        raise InvalidRequest(f"A number has more than {_MAX_DIGITS} digits", type="json_parse_exception")
    return int(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_refuse_duplicate_keys, parse_constant=_refuse_constant, parse_int=_parse_integer
)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
