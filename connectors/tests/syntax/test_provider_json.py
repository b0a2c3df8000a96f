"""What providers send that is not quite JSON is read as it is meant."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.syntax import provider_json

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'\xef\xbb\xbf{"a":"\xef\xbb\xbf"}', {"a": "\ufeff"}),
        (b'{"a":"b\xffc","d\xe2\x82":1}', {"a": "b\ufffdc", "d\ufffd": 1}),
        (b'"\xed\xa0\xbd"', "\ufffd" * 3),
        (rb'["\ud83d","x\ude00y","\ud83d\ude00\ud83d","\uD83D\uDE00\uDE00"]',
         ["\ufffd", "x\ufffdy", "😀\ufffd", "😀\ufffd"]),
        (rb'["\\ud83d \\\ud83d \"\ud83d\"","\\"]', ['\\ud83d \\\ufffd "\ufffd"', "\\"]),
        (rb'{"\ud83d":"\ude00"}', {"\ufffd": "\ufffd"}),
        (b'{"a":NaN,"b":[-Infinity, Infinity,nan,-nan,inf],"c":"NaN, Infinity \\" NaN"}',
         {"a": None, "b": [None] * 5, "c": 'NaN, Infinity " NaN'}),
        (b"NaN", None),
        (b'{"a":"b\nc\td\r\x00","e":\n1\t}', {"a": "b\nc\td\r\0", "e": 1}),
        (b'{"arguments":"{\\"a\\":\\"\\\\ud83d\\",\\"b\\":NaN}","n":NaN}',
         {"arguments": '{"a":"\\ud83d","b":NaN}', "n": None}),
        (b'{"a":1,"a":NaN}', {"a": None}),
        (b'["%b",NaN]' % (rb"\"" * 300_000), ['"' * 300_000, None]),
        (b"[NaN,123456789012345678901234567890]", [None, 123456789012345678901234567890.0]),
    ],
)  # fmt: skip
def test_what_is_not_quite_json_is_read_as_it_is_meant(data: bytes, value: Any) -> None:
    assert provider_json.loads(data) == value
    text, same = provider_json.read(data)
    assert same == value
    assert orjson.loads(text) == value


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xef\xbb\xbf", b"{", b'{"a', b'{"a":"\\', b"{NaN:1}", b"[NaNs]", b"[+NaN]", b"[NaN1]", b"[1NaN]",
        b"[Infinite]", b"{'a':1}", b"[1,]", b'{"a":1} x', b"nope", b'{"a":"\\x"}', rb'"\ud8"', b"[1e400]",
        b"[NaN,1e400]",
        b"[" * 2_000 + b"NaN" + b"]" * 2_000, b"<html>", b"\x00{}", b'[NaN,"' + b'a"' * 200_000,
    ],
)  # fmt: skip
def test_what_is_no_json_by_any_reading_is_refused(data: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        provider_json.loads(data)


@given(_VALUES, st.booleans())
def test_json_is_read_as_it_is_and_repaired_to_the_same(value: Any, ascii_only: bool) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert provider_json.read(data) == (data, value)
    assert orjson.loads(provider_json.repair(data)) == value


@given(st.text(st.characters() | st.characters(categories=["Cs"])), st.binary(max_size=4))
def test_any_text_becomes_what_utf8_and_utf16_make_of_it(text: str, bytes_within: bytes) -> None:
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    escaped = json.dumps({"a": text, "b": "?"}).encode().replace(b"?", bytes_within.translate(None, b'"\\'))
    within = bytes_within.translate(None, b'"\\').decode("utf-8", "replace")
    assert provider_json.loads(escaped) == {"a": whole, "b": within}
