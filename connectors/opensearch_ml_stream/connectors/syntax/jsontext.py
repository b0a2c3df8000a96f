"""JSON text: parse request bodies as OpenSearch does, and write JSON.

OpenSearch's parser takes `//` and `/* */` comments and refuses duplicate keys. A value that is passed on to a provider
keeps the text that the caller wrote, so that `0.0001` does not become `1.0E-4`: it is a `JsonText`.

Everything takes time linear in the text. Nesting and the number of values are bounded, so that no code that walks a
value runs out of stack, and no text of few bytes becomes a million objects.
"""

import json
import re
from collections import Counter
from json.encoder import encode_basestring
from typing import Any, NoReturn

import orjson

from opensearch_ml_stream.connectors.errors import InvalidRequest


class WrittenNumber(float):
    """A number whose text Python would write differently, such as 0.10 or 1e3. It counts and is stored as any other.

    A name, a header or a credential may be given as a number. ML Commons keeps the text that was written, so that the
    header `1.10` is not sent as `1.1`.
    """

    __slots__ = ("text",)
    text: str


def parse_number(text: str) -> float:
    """Return a number with a fraction or an exponent; a WrittenNumber if its text would be lost."""
    value = float(text)
    if repr(value) == text:
        return value
    number = WrittenNumber(value)
    number.text = text
    return number


def scalar_text(value: Any, name: str) -> str:
    """Return a string as it is, a number or boolean as JSON has it. InvalidRequest for null, an object, an array."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, WrittenNumber):
        return value.text
    if isinstance(value, int | float):
        return str(value)
    raise InvalidRequest(f"{name} must be a string")


def scalar_texts(values: dict[str, Any], name: str) -> dict[str, str]:
    """Return an object whose values are scalars with these as text. InvalidRequest names the first that is none."""
    return {key: scalar_text(value, f"{name}.{key}") for key, value in values.items()}


MAX_DEPTH = 200  # of objects and arrays within each other; orjson writes no more than 254
MAX_VALUES = 160_000  # of a text, or one for each 8 characters; an image as numbers has 150,528 (224 x 224 x 3)
MAX_NAMES = 40_000  # of members, or one for each 24 characters: a name costs ten times as much as a number
MAX_COMPRESSED_PARTS = 400_000  # of a body that came compressed, or one for each 2 bytes sent
MAX_COMMENTS = 10_000  # each takes a step of Python, all else of a text is walked by functions of C
_MAX_CHARS_WITH_WRITTEN_NUMBERS = 128 * 1024  # keeping the texts of more numbers takes longer than parsing them
_MAX_DIGITS = 1000  # of a number, the limit of OpenSearch's parser (Jackson)
_PART_MARKS = b',:{["'
_CONTAINERS = (dict, list)
_BYTE_ORDER_MARK = "\ufeff"
_BLANK = re.compile(r"[ \t\n\r]*")
# Possessive and unrolled: any other form keeps a backtracking state for every character or escape of a long text.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_UNCOMMENTED = rf'(?:[^"/]++|{_STRING}?|/(?![/*]))*+'
# An unclosed string or comment matches up to the end: without a match, each of a million `/*` would be searched again.
_UP_TO_COMMENT = re.compile(rf"({_UNCOMMENTED})(?://[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z))?+", re.DOTALL)
_STRINGS = re.compile(_STRING, re.DOTALL)


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
    """Replace each `//` and `/* */` comment outside of strings by a blank. InvalidRequest beyond MAX_COMMENTS."""
    if "/" not in text or ("//" not in text and "/*" not in text):
        return text
    parts: list[str] = []
    for found in _UP_TO_COMMENT.finditer(text):
        parts.append(found[1])
        if found.end() == found.end(1):  # no comment: the text is over
            break
        if len(parts) > MAX_COMMENTS:
            raise InvalidRequest(f"The request body has more than {MAX_COMMENTS} comments", type="json_parse_exception")
    return " ".join(parts)


def loads(data: bytes) -> Any:
    """Parse a request body. InvalidRequest (with line and column, never the text) if it is not JSON."""
    text, start = _find_value(data)
    value, end = _parse_at(text, start, decoder_for(text))
    if skip_blanks(text, end) != len(text):
        raise not_json(json.JSONDecodeError("Extra data", text, skip_blanks(text, end)))
    return value


def load_object(data: bytes, *, written_numbers: bool = False) -> dict[str, Any]:
    """Parse the JSON object that a request body begins with, for every route that takes an object.

    `written_numbers` keeps the text of numbers in a body of up to 128 Ki characters; see `scalars.WrittenNumber`.

    What follows the object is ignored: ML Commons reads up to the object's last brace, and some public blueprints have
    one brace too many. InvalidRequest if the body does not begin with a JSON object.
    """
    text, start = _find_value(data)
    if text[start] != "{":
        loads(data)
        raise InvalidRequest("The request body must be a JSON object", type="parse_exception")
    keeps_texts = written_numbers and len(text) <= _MAX_CHARS_WITH_WRITTEN_NUMBERS
    decoder = _NUMBER_WRITING_DECODER if keeps_texts else decoder_for(text)
    value: dict[str, Any] = _parse_at(text, start, decoder)[0]
    return value


def parse(text: str, name: str) -> Any:
    """Parse the JSON text of `name`, such as a parameter. InvalidRequest if it is not JSON, or beyond the bounds."""
    try:
        check_value_count(text)
        value = decoder_for(text).decode(text)
        if may_be_deep(text):
            check_depth(value)
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"{name} is not JSON: {describe(error)}") from None
    except InvalidRequest as error:
        raise InvalidRequest(f"{name} is not JSON: {error.reason}") from None
    except RecursionError:
        raise InvalidRequest(f"{name} is nested more than {MAX_DEPTH} levels deep") from None
    return value


def value_or_text(text: str) -> Any:
    """Return the JSON value that the whole text is, else the text as it is."""
    if not isinstance(text, JsonText) and not is_json(text):
        return text
    try:
        return parse(text, "")
    except InvalidRequest:  # a name twice in an object
        return text


def _find_value(data: bytes) -> tuple[str, int]:
    """Return the text of a body and the position of its value. InvalidRequest if the body is blank."""
    text = decode(data)
    start = skip_blanks(text, 0)
    if start == len(text):
        raise InvalidRequest("request body is required", type="parse_exception")
    check_value_count(text)
    return text, start


def _parse_at(text: str, start: int, decoder: json.JSONDecoder) -> tuple[Any, int]:
    try:
        value, end = decoder.raw_decode(text, start)
        if may_be_deep(text):
            check_depth(value)
    except json.JSONDecodeError as error:
        raise not_json(error) from None
    except RecursionError:
        raise too_deep() from None
    return value, end


def check_value_count(text: str) -> None:
    """Raise InvalidRequest for a text that holds more values or names than it may have; see MAX_VALUES."""
    if len(text) <= MAX_NAMES:
        return
    values, names = max(MAX_VALUES, len(text) // 8), max(MAX_NAMES, len(text) // 24)

    def has_too_many(part: str) -> bool:
        return part.count(":") > names or part.count(",") + part.count("{") + part.count("[") > values

    if has_too_many(text) and has_too_many(_STRINGS.sub("", text)):
        raise InvalidRequest(
            f"A JSON text of this length may hold {values} values, and {names} names in its objects",
            type="json_parse_exception",
        )


def check_compressed(body: bytes, sent: int) -> None:
    """Raise InvalidRequest for a body that holds more parts than the `sent` bytes pay for that it was compressed to.

    A byte of gzip may be a thousand of JSON, and each part takes far longer than the bytes of a text.
    """
    limit = max(MAX_COMPRESSED_PARTS, sent // 2)
    if len(body) > limit and len(body) - len(body.translate(None, _PART_MARKS)) > limit:
        raise InvalidRequest(
            f"A compressed body of {sent} bytes may hold {limit} of the characters {_PART_MARKS.decode()}; this one"
            " holds more. Send it without Content-Encoding",
            type="json_parse_exception",
        )


def may_be_deep(text: str) -> bool:
    """Return whether the text has so many brackets that its nesting must be looked at."""
    return text.count("{") + text.count("[") > MAX_DEPTH


def check_depth(value: Any) -> None:
    """Raise RecursionError, as the parser does for a much deeper one, if a value is nested too deeply."""
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, _CONTAINERS)
        ]
        if not level:
            return
    raise RecursionError


def decoder_for(text: str) -> json.JSONDecoder:
    """Return the decoder for a text: the one that counts digits, which costs time for each integer, only if needed.

    A number of 1,000 digits covers a whole block of 500.
    """
    block = _MAX_DIGITS // 2
    if not any(map(str.isdigit, text[block - 1 :: block])):
        return _DECODER
    if any(text[start : start + block].isdigit() for start in range(0, len(text) - block + 1, block)):
        return _DIGIT_COUNTING_DECODER
    return _DECODER


def too_deep() -> InvalidRequest:
    """Return the error for a body that is nested too deeply."""
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


def duplicate_key(name: str) -> InvalidRequest:
    """Return the error for an object with two members of that name."""
    return InvalidRequest(f"Duplicate field '{name}'", type="json_parse_exception")


def is_json(text: str) -> bool:
    """Return whether the whole text is one JSON value by the strict grammar (RFC 8259)."""
    try:
        value = orjson.loads(str(text))  # it takes no subclass, such as JsonText
        if may_be_deep(text):
            check_depth(value)
    except (orjson.JSONDecodeError, RecursionError):
        return False
    return True


def is_container(text: str) -> bool:
    """Return whether the whole text is a JSON object or array."""
    return text.lstrip().startswith(("{", "[")) and is_json(text)


def dumps(value: Any) -> str:
    """Encode a value as compact JSON, with non-ASCII characters as they are. InvalidRequest if it cannot be JSON."""
    try:
        return _ENCODER.encode(value)
    except RecursionError:
        raise too_deep() from None
    except ValueError:
        raise InvalidRequest("A number is beyond 1.8e308, or not a number", type="json_parse_exception") from None


def to_text(value: Any) -> str:
    """Return a string as it is, any other value as compact JSON."""
    return value if isinstance(value, str) else dumps(value)


def escape(text: str) -> str:
    """Escape text for use between the quotes of a JSON string."""
    return quote(text)[1:-1]


def parse_parameter(text: str) -> str:
    """Return a parameter's value from its JSON text: the content of a string as `str`, anything else as `JsonText`."""
    return parse_string(text) if text.startswith('"') else JsonText(text)


def to_parameter(value: Any) -> str:
    """Return a parsed value as a parameter: a string as `str`, anything else as `JsonText`.

    A number has the text that `load_object` kept, else Python's; one within an array or object always has Python's.
    """
    if isinstance(value, str):
        return value
    return JsonText(value.text if isinstance(value, WrittenNumber) else dumps(value))


def parse_string(text: str) -> str:
    """Return the content of a JSON string, which the parser has accepted."""
    if "\\" not in text and text.isprintable():
        return text[1:-1]
    return str(json.loads(text))


def skip_blanks(text: str, position: int) -> int:
    """Return the position of the next character that is not blank."""
    blanks = _BLANK.match(text, position)
    return blanks.end() if blanks else position


def refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's members. InvalidRequest if two have the same name."""
    value = dict(pairs)
    if len(value) != len(pairs):
        duplicate = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise duplicate_key(duplicate)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidRequest(f"{name} is not a JSON number", type="json_parse_exception")


def _parse_integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:  # Python refuses more of them too: parsing takes quadratic time
        raise InvalidRequest(f"A number has more than {_MAX_DIGITS} digits", type="json_parse_exception")
    return int(text)


_DECODER = json.JSONDecoder(object_pairs_hook=refuse_duplicate_keys, parse_constant=_refuse_constant)
_DIGIT_COUNTING_DECODER = json.JSONDecoder(
    object_pairs_hook=refuse_duplicate_keys, parse_constant=_refuse_constant, parse_int=_parse_integer
)
_NUMBER_WRITING_DECODER = json.JSONDecoder(
    object_pairs_hook=refuse_duplicate_keys,
    parse_constant=_refuse_constant,
    parse_int=_parse_integer,
    parse_float=parse_number,
)
quote = encode_basestring
"""Returns text as a JSON string, with non-ASCII characters as they are: a function of C."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def to_json(value: Any) -> bytes:
    """Return a value as compact JSON, also where orjson refuses it."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # a number of more than 64 bits, half of a surrogate pair
        return json.dumps(value).encode()
