"""Newline-delimited JSON, cut anywhere."""

import json

import pytest

from opensearch_ml_stream.connectors.decoding.contract import MAX_EVENT_BYTES
from opensearch_ml_stream.connectors.decoding.ndjson import NDJSONFraming
from opensearch_ml_stream.connectors.event import Event
from tests.decoding.split_reads import read_payloads


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_every_line_is_an_event_and_blank_ones_are_none(size: int) -> None:
    data = b'{"a":1}\n\n  \r\n{"b":"\xe2\x80\xa8"}\r\n{"c":3}'
    payloads = read_payloads(NDJSONFraming(), data, size)
    assert [json.loads(line) for line in payloads] == [{"a": 1}, {"b": "\u2028"}, {"c": 3}]


def test_a_line_is_delivered_with_its_end_and_has_no_name() -> None:
    framing = NDJSONFraming()
    assert framing.feed(b'{"a":1}') == []
    assert framing.feed(b'\n{"b":2}\n') == [Event("", b'{"a":1}'), Event("", b'{"b":2}')]
    assert framing.close() == []


def test_a_line_of_the_greatest_size_is_no_error_and_one_byte_more_is() -> None:
    framing = NDJSONFraming()
    for piece in (b"{}\n1", b"x" * (MAX_EVENT_BYTES - 1)):
        framing.feed(piece)
    assert framing.error is None
    framing.feed(b"x")
    assert framing.error is not None
    assert framing.error.status == 424


def test_many_long_lines_are_no_error() -> None:
    framing = NDJSONFraming()
    for _ in range(20):
        framing.feed(b"x" * (MAX_EVENT_BYTES // 16))
        assert len(framing.feed(b"\n")) == 1
    assert framing.error is None
