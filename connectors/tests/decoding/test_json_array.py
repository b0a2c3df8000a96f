"""One JSON array, cut anywhere, whose objects are events."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.decoding.contract import MAX_EVENT_BYTES
from opensearch_ml_stream.connectors.decoding.json_array import JSONArrayFraming
from opensearch_ml_stream.connectors.errors import StreamTruncated
from opensearch_ml_stream.connectors.event import Event
from tests.decoding.split_reads import read_payloads

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.dictionaries(st.text(max_size=8), values, max_size=4), max_size=5),
    st.integers(1, 40),
    st.sampled_from([None, 2]),
)
def test_the_objects_of_an_array_are_events_however_it_is_written_and_cut(
    objects: list[dict[str, object]], size: int, indent: int | None
) -> None:
    data = json.dumps(objects, indent=indent, ensure_ascii=False).encode()
    framing = JSONArrayFraming()
    with_members = [object for object in objects if object]
    assert [json.loads(payload) for payload in read_payloads(framing, data, size)] == with_members
    assert framing.error is None


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_brackets_and_quotes_within_strings_are_text(size: int) -> None:
    objects = [b'{"a":"}]{[,"}', rb'{"b":"\"}\\"}', rb'{"c":"\\\"]","d":[{}]}']
    framing = JSONArrayFraming()
    assert read_payloads(framing, b"[" + b" ,\r\n\t".join(objects) + b"]", size) == objects
    assert framing.error is None


def test_an_object_is_delivered_with_its_last_brace_and_not_with_the_next_comma() -> None:
    assert JSONArrayFraming().feed(b'[{"a":1}') == [Event("", b'{"a":1}')]


def test_a_single_object_is_one_event() -> None:
    assert read_payloads(JSONArrayFraming(), b' {"error": {"code": 429}} ', 3) == [b'{"error": {"code": 429}}']


@pytest.mark.parametrize("data", [b'[{"a":1}', b'[{"a":1},', b'[{"a', b'{"a":', b"["])
def test_an_array_that_is_not_closed_is_truncated(data: bytes) -> None:
    framing = JSONArrayFraming()
    read_payloads(framing, data)
    assert isinstance(framing.error, StreamTruncated)


@pytest.mark.parametrize("data", [b"", b"[]", b" [\n] ", b'{"a":1}'])
def test_an_array_that_is_closed_is_no_error(data: bytes) -> None:
    framing = JSONArrayFraming()
    read_payloads(framing, data)
    assert framing.error is None


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize(
    "data", [b"<html>", b"[1,2]", b"}", b'[{"a":1}] [ ] ]', b'[{"a":1}] x', b"[{} x {}]", b'["a"]']
)
def test_what_is_no_array_of_objects_is_an_error(data: bytes, size: int) -> None:
    framing = JSONArrayFraming()
    read_payloads(framing, data, size)
    assert framing.error is not None
    assert not isinstance(framing.error, StreamTruncated)
    assert framing.feed(b'[{"a":1}]') == []


def test_an_event_of_the_greatest_size_is_no_error_and_one_byte_more_is() -> None:
    framing = JSONArrayFraming()
    for piece in (b'[{"a":1},  {"b":"', b"x" * (MAX_EVENT_BYTES - len(b'{"b":"'))):
        framing.feed(piece)
    assert framing.error is None
    framing.feed(b"x")
    assert framing.error is not None
    assert not isinstance(framing.error, StreamTruncated)


def test_many_large_events_in_several_reads_each_are_no_error() -> None:
    framing = JSONArrayFraming()
    framing.feed(b"[")
    for _ in range(20):
        framing.feed(b'{"a":"' + b"x" * (MAX_EVENT_BYTES // 16))
        assert len(framing.feed(b'"},')) == 1
    assert framing.error is None
