"""Read fields of a provider's JSON events by type, since no provider guarantees its types.

A wrong type raises TypeError if the response would be damaged, so that the event ends the stream as an error. If only a
detail would be lost (a token count, a model name), the field counts as absent.
"""

import re
from typing import Any

import orjson

MAX_COUNT = 2**53 - 1  # the largest integer that every JSON parser reads exactly (RFC 8259, section 6)
MAX_NAME_CHARS = 1_000
MAX_ELEMENTS = 2_000  # of a list of parts or tool calls in one event
_DIGITS = re.compile(r"[0-9]{1,16}").fullmatch
MAX_TOOL_CALLS = 10_000  # of a stream, each of which is remembered


def text(value: Any) -> str:
    """Return a piece of text, "" for null. TypeError for anything that is not a string."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    raise TypeError("not a string")


def count(value: Any) -> int | None:
    """Return a number of tokens, None if it is no integer or a negative one. Cohere and Titan write 12.0, others "12".

    More than MAX_COUNT is MAX_COUNT: what no budget allows must not count as nothing.
    """
    if type(value) is int and 0 <= value <= MAX_COUNT:  # as nearly all are
        return value
    if (isinstance(value, float) and value.is_integer()) or (isinstance(value, str) and _DIGITS(value)):
        value = int(value)
    return min(value, MAX_COUNT) if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def total(*counts: int | None) -> int | None:
    """Return the sum of those counts that are reported, None if none is."""
    reported = [count for count in counts if count is not None]
    return sum(reported) if reported else None


def name(value: Any) -> str | None:
    """Return a model name, tool call id or finish reason, None if it is not a string or empty."""
    return value[:MAX_NAME_CHARS] if isinstance(value, str) and value else None


def elements(value: Any) -> list[Any]:
    """Return a list of parts or tool calls. TypeError if it is none, ValueError if it is longer than any provider's."""
    if not isinstance(value, list):
        raise TypeError("not a list")
    if len(value) > MAX_ELEMENTS:
        raise ValueError("too many elements")
    return value


def tool_index(indexes: dict[int, int], own: Any) -> int:
    """Return the index of a tool call by the provider's own, the next one for one that is new to `indexes`.

    TypeError if the provider's is not an integer, ValueError for more tool calls than a stream may have.
    """
    if not isinstance(own, int):
        raise TypeError("not an integer")
    if own not in indexes and len(indexes) >= MAX_TOOL_CALLS:
        raise ValueError("too many tool calls")
    return indexes.setdefault(own, len(indexes))


def mapping(value: Any) -> dict[str, Any]:
    """Return a JSON object, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def arguments(value: Any) -> str:
    """Return a tool call's arguments as JSON text: a string as it is, "" for null, any other value encoded."""
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value).decode()


def is_json(text: str) -> bool:
    """Return whether arguments are whole."""
    try:
        orjson.loads(text)
    except ValueError:
        return False
    return True
