"""The members of a JSON object as text: take an object apart and put it together without rewriting its values."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext

MAX_MEMBERS = 10_000  # of an object that is taken apart: a body, its parameters, a rendered payload

_Members = list[tuple[str, str]]

# The tokens around an object's values. `_BEGIN` includes the `}` of an empty object.
_BEGIN = re.compile(r"[ \t\n\r]*\{[ \t\n\r]*(\})?")
_KEY = re.compile(r'[ \t\n\r]*+("[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+")[ \t\n\r]*+:[ \t\n\r]*+')
_NEXT = re.compile(r"[ \t\n\r]*([,}])")


def split_members(text: str) -> _Members:
    """Return each key of a JSON object with the JSON text of its value.

    json.JSONDecodeError if it is no object, RecursionError if it is too deep, InvalidRequest for too many members.
    """
    members, end = _split_members(text, 0, jsontext.decoder_for(text), None)
    if jsontext.skip_blanks(text, end) != len(text):
        raise json.JSONDecodeError("Extra data", text, jsontext.skip_blanks(text, end))
    return members


def split_unique_members(text: str) -> dict[str, str]:
    """Return the members of a JSON object as `split_members` does. InvalidRequest for a duplicate key."""
    return _unique(split_members(text))


def split_body(text: str, inner: str) -> tuple[dict[str, str], dict[str, str] | None]:
    """Return the members of a body as `split_unique_members` does, and those of its member `inner`.

    Each value is parsed once. `inner` itself is not among the members if it is an object; else the second is None.
    What follows the body's object is ignored, as by `jsontext.load_object`.
    """
    inner_members: list[_Members] = []
    jsontext.check_value_count(text)
    members, _ = _split_members(text, 0, jsontext.decoder_for(text), (inner, inner_members))
    unique = _unique(members)
    if len(inner_members) + (inner in unique) > 1:
        raise jsontext.duplicate_key(inner)
    return unique, _unique(inner_members[0]) if inner_members else None


def _split_members(
    text: str, position: int, decoder: json.JSONDecoder, inner: tuple[str, list[_Members]] | None
) -> tuple[_Members, int]:
    """Return the members of the object at a position, and where it ends; those of the object `inner` go to its list."""
    begin = _BEGIN.match(text, position)
    if begin is None:
        raise json.JSONDecodeError("Expecting an object", text, jsontext.skip_blanks(text, position))
    may_be_deep = jsontext.may_be_deep(text)
    pairs: _Members = []
    position, more = begin.end(), begin[1] is None
    while more:
        key = _KEY.match(text, position)
        if key is None:
            raise _syntax_error(text)
        if "\\" in key[1]:
            decoder.raw_decode(text, key.start(1))  # raises if the escape is not valid
        name, start = jsontext.parse_string(key[1]), key.end()
        if inner is not None and name == inner[0] and text.startswith("{", start):
            members, end = _split_members(text, start, decoder, None)
            inner[1].append(members)
        else:
            value, end = decoder.raw_decode(text, start)
            if may_be_deep:
                jsontext.check_depth(value)
            pairs.append((name, text[start:end]))
        if len(pairs) > MAX_MEMBERS:
            raise InvalidRequest(f"An object has more than {MAX_MEMBERS} members", type="json_parse_exception")
        after = _NEXT.match(text, end)
        if after is None:
            raise _syntax_error(text)
        position, more = after.end(), after[1] == ","
    return pairs, position


def _unique(members: _Members) -> dict[str, str]:
    unique = dict(members)
    if len(unique) != len(members):
        jsontext.refuse_duplicate_keys(members)
    return unique


def join_members(members: Mapping[str, str]) -> str:
    """Return the JSON object with these names and JSON texts of values."""
    return "{" + ",".join([f"{jsontext.dumps(name)}:{value}" for name, value in members.items()]) + "}"


def set_members(text: str, values: Mapping[str, Any], drop: Collection[str] = ()) -> str:
    """Return the JSON object `text` with `values` set and the names of `drop` removed; other values keep their text.

    json.JSONDecodeError or InvalidRequest if `text` is no object that OpenSearch would take.
    """
    members = split_unique_members(text)
    kept = {name: value for name, value in members.items() if name not in values and name not in drop}
    return join_members(kept | {name: jsontext.dumps(value) for name, value in values.items()})


def set_inner_members(text: str, name: str, values: Mapping[str, Any]) -> str:
    """Return the JSON object `text` with `values` set in its member `name`, which becomes an object if it is missing.

    Errors as `set_members`, also if the member is no object.
    """
    members = split_unique_members(text)
    return join_members(members | {name: set_members(members.get(name, "{}"), values)})


def _syntax_error(text: str) -> json.JSONDecodeError:
    """Return the parser's error for a text that is no JSON object."""
    try:
        jsontext.decoder_for(text).decode(text)
    except json.JSONDecodeError as error:
        return error
    return json.JSONDecodeError("Expecting an object", text, 0)
