"""JSON to and from bytes as MLServer's REST port writes it: compact, bytes as text, NaN as null, arrays as lists.

With orjson where the interpreter has it, else with the standard library; the bytes are the same.
"""

import dataclasses
import importlib
import json
import math
from collections.abc import Callable
from datetime import date, time
from enum import Enum
from typing import Any
from uuid import UUID

Default = Callable[[Any], Any]


def plain(value: Any) -> Any:
    """Return a JSON value for a value of another type; TypeError if there is none."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, bytearray | memoryview):
        return bytes(value).decode()
    if hasattr(value, "tolist"):  # an array or a number of NumPy, PyTorch and others
        return value.tolist()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, set | frozenset):
        return list(value)
    raise TypeError(f"{type(value).__module__}.{type(value).__qualname__} has no form in JSON")


def _standard() -> tuple[Callable[[Any, Default], bytes], Callable[[bytes | str], Any]]:
    def encode(value: Any, default: Default) -> bytes:
        encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=default)
        try:
            return encoder.encode(value).encode()
        except ValueError:
            return encoder.encode(_without_nan(value, default)).encode()

    return encode, json.loads


def _without_nan(value: Any, default: Default) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_nan(member, default) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(member, default) for member in value]
    if value is None or isinstance(value, str | int):
        return value
    return _without_nan(default(value), default)


def _fastest() -> tuple[Callable[[Any, Default], bytes], Callable[[bytes | str], Any]]:
    try:
        orjson = importlib.import_module("orjson")
    except ImportError:
        return _standard()
    dumps, option = orjson.dumps, orjson.OPT_SERIALIZE_NUMPY

    def encode(value: Any, default: Default) -> bytes:
        encoded: bytes = dumps(value, default, option)
        return encoded

    return encode, orjson.loads


_encode, _decode = _fastest()


def dumps(value: Any, default: Default = plain) -> bytes:
    """Encode a value; TypeError for one that has no form in JSON."""
    return _encode(value, default)


def loads(data: bytes | str) -> Any:
    """Decode JSON; ValueError if it is invalid."""
    return _decode(data)


def indented(value: Any, indent: int) -> str:
    """Encode a value over many lines, for people."""
    return json.dumps(value, ensure_ascii=False, indent=indent, default=plain)
