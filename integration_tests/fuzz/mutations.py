"""What is put into good inputs to make bad ones: bytes into texts, values into JSON."""

import struct
from collections.abc import Sequence
from copy import deepcopy
from typing import Any
from zlib import crc32

from hypothesis import strategies as st

TOKENS = [
    b"", b"\n", b"\n\n", b"\r\n", b"\r", b"data: ", b"data:\n", b"event: error\n", b": \n", b"{", b"}", b"[", b"]",
    b'"', b",", b"null", b"true", b"-1", b"0", b"1e999", b"1e400", b"9" * 5_000, b"[" * 2_000, b'{"a":' * 1_200,
    b"\\ud83d", b"\\ude00", b"\\u0000", b"\\", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xe2\x80\xa8",
    b"[DONE]", b"{}", b'"error"', b'"error":"x"', b'{"error":{"message":["x"]}}', b"data: [DONE]\n\n", b"NaN",
    b"Infinity", b'\\ud83d"', b'"\\ude00', b"data: ping\n\n", b'"\n"',
]  # fmt: skip
ODD_VALUES = [
    0, -1, 2**31, 2**63, 2**64, 10**400, -0.0, 1.5, 1e308, "", "0", "null", "{}", "[]", "\x00", "\ud83d", "a" * 3_000,
]  # fmt: skip
PROVIDER_NAMES = [
    "text", "content", "type", "index", "delta", "choices", "message", "error", "usage", "id", "name", "role", "bytes",
    "stop_reason", "finish_reason", "tool_calls", "function", "arguments", "output", "response", "parts", "model",
]  # fmt: skip
Edit = tuple[int, int, bytes]
Replacement = tuple[int, Any]


def edits(tokens: Sequence[bytes] = TOKENS) -> st.SearchStrategy[list[Edit]]:
    """Places, how many bytes are cut out there, and what is put in their stead."""
    token = st.one_of(st.sampled_from(tokens), st.binary(max_size=6))
    return st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 60), token), min_size=1, max_size=5)


def edited(data: bytes, changes: list[Edit]) -> bytes:
    for place, length, token in changes:
        at = place % (len(data) + 1)
        data = data[:at] + token + data[at + length :]
    return data


def json_values(names: Sequence[str] = PROVIDER_NAMES) -> st.SearchStrategy[Any]:
    """JSON values, among them the odd ones."""
    leaves = st.one_of(
        st.none(), st.booleans(), st.sampled_from(ODD_VALUES), st.integers(), st.text(max_size=8),
        st.floats(allow_nan=False, allow_infinity=False),
    )  # fmt: skip
    keys = st.sampled_from(names)
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=8
    )


def replacements() -> st.SearchStrategy[list[Replacement]]:
    """Which of a JSON document's values are replaced, and by what."""
    return st.lists(st.tuples(st.integers(0, 500), json_values()), min_size=1, max_size=4)


def replaced(document: Any, changes: list[Replacement]) -> Any:
    for number, value in changes:
        places = _places(document)
        if not places:
            return deepcopy(value)
        container, key = places[number % len(places)]
        container[key] = deepcopy(value)  # which may be put into itself
    return document


def _places(value: Any) -> list[tuple[Any, Any]]:
    """The container and the key of each value inside `value`."""
    pairs = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    return [(value, key) for key, _ in pairs] + [place for _, inner in pairs for place in _places(inner)]


def event_frame(name: str, payload: bytes) -> bytes:
    """A frame of AWS' event stream: lengths, their checksum, one header, the payload, the checksum of it all."""
    header = b"\x0b:event-type\x07" + struct.pack(">H", len(name)) + name.encode()
    lengths = struct.pack(">II", 16 + len(header) + len(payload), len(header))
    message = lengths + struct.pack(">I", crc32(lengths)) + header + payload
    return message + struct.pack(">I", crc32(message))
