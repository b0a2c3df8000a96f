"""The framing is recognised by the first bytes."""

import time
from collections.abc import Callable

import pytest

from opensearch_ml_stream.connectors.decoding.aws_eventstream import AWSEventStreamFraming
from opensearch_ml_stream.connectors.decoding.contract import Framing
from opensearch_ml_stream.connectors.decoding.detected_framing import MAX_UNDECIDED_BYTES, DetectedFraming
from opensearch_ml_stream.connectors.decoding.json_array import JSONArrayFraming
from opensearch_ml_stream.connectors.decoding.ndjson import NDJSONFraming
from opensearch_ml_stream.connectors.decoding.plain_text import PLAIN_TEXT
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.errors import StreamTruncated, UpstreamError
from opensearch_ml_stream.connectors.event import Event
from tests.decoding.split_reads import read_events
from tests.providers.eventstream_frames import event


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize(
    ("data", "first"),
    [
        (b'\n {"a":1}\n{"b":2}\n', Event("", b' {"a":1}')),
        (b'[{"a":1},\n{"b":2}]', Event("", b'{"a":1}')),
        (b'\xef\xbb\xbf{"a":1}\n', Event("", b'{"a":1}')),
        (b'\xef\xbb\xbf[{"a":1}]', Event("", b'{"a":1}')),
        (b"data: 1\n\ndata: 2\n\n", Event("", b"1")),
        (b"\xef\xbb\xbfdata: 1\n\n", Event("", b"1")),
        (b": hello\n\nevent: x\ndata: 1\n\n", Event("x", b"1")),
        (b"event: x\ndata: 1\n\n", Event("x", b"1")),
        (b"id: 7\ndata: 1\n\n", Event("", b"1")),
        (b"retry: 7\ndata: 1\n\n", Event("", b"1")),
    ],
)
def test_the_first_bytes_show_the_framing(data: bytes, first: Event, size: int) -> None:
    assert read_events(DetectedFraming(), data, size)[0] == first


@pytest.mark.parametrize("text", ["dat", "data", "event and more", "Hello", "i", "\u00ef", "\u00e9", " x"])
def test_anything_else_is_plain_text(text: str) -> None:
    for size in (1, 1000):
        events = read_events(DetectedFraming(), text.encode(), size)
        assert {event.name for event in events} == {PLAIN_TEXT}
        assert b"".join(event.data for event in events) == text.encode()


def test_text_that_cannot_begin_another_framing_is_delivered_at_once() -> None:
    assert DetectedFraming().feed(b"Hello") == [Event(PLAIN_TEXT, b"Hello")]
    assert DetectedFraming().feed(b"dat") == []


def test_blanks_are_held_up_to_a_bound_and_then_are_plain_text() -> None:
    blanks = b" " * MAX_UNDECIDED_BYTES
    framing = DetectedFraming()
    assert framing.feed(blanks) == []
    assert framing.feed(b" ") == [Event(PLAIN_TEXT, blanks + b" ")]


@pytest.mark.parametrize("data", [b"", b"  \r\n"])
def test_a_blank_body_has_no_events_and_no_error(data: bytes) -> None:
    framing = DetectedFraming()
    assert read_events(framing, data, 1) == []
    assert framing.error is None


@pytest.mark.parametrize(
    ("data", "error"), [(b'[{"a":1}', StreamTruncated), (b"[1]", UpstreamError), (b"\xc3", StreamTruncated)]
)
def test_an_error_of_the_framing_is_an_error(data: bytes, error: type[UpstreamError]) -> None:
    framing = DetectedFraming()
    read_events(framing, data)
    assert type(framing.error) is error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("framing", "data"),
    [
        (SSEFraming, b"data: " + b"x" * 300_000 + b"\n\n"),
        (SSEFraming, b"data: x\n" * 40_000 + b"\n"),
        (NDJSONFraming, b'"' + b"x" * 300_000 + b'"\n'),
        (JSONArrayFraming, b'[{"a":"' + b"x" * 150_000 + b"{}" * 75_000 + b'"}]'),
        (AWSEventStreamFraming, event("chunk", b"x" * 300_000)),
        (DetectedFraming, b'{"a":"' + b"x" * 300_000 + b'"}\n'),
    ],
    ids=["sse", "sse lines", "ndjson", "json array", "event stream", "detected"],
)
def test_a_long_event_that_comes_byte_by_byte_takes_time_linear_in_its_length(
    framing: Callable[[], Framing], data: bytes
) -> None:
    begin = time.process_time()
    assert len(read_events(framing(), data, 1)) == 1
    assert time.process_time() - begin < 3
