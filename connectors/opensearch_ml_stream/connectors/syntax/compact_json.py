"""JSON without blanks, of values that came from anywhere: a provider, a script of the connector, a caller."""

import json
from typing import Any

import orjson


def to_json(value: Any) -> bytes:
    """Return a value as compact JSON, also where orjson refuses it."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # a number of more than 64 bits, half of a surrogate pair
        return json.dumps(value).encode()
