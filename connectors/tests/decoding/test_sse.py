"""Server-sent events, cut anywhere."""

import pytest

from opensearch_ml_stream.connectors.decoding.contract import LINE_BYTES, MAX_EVENT_BYTES
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.event import Event
from tests.decoding.split_reads import read_events


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("data", "events"),
    [
        (b"data: a\n\n", [("", b"a")]),
        (b"data:a\n\ndata:  b\n\n", [("", b"a"), ("", b" b")]),
        (b"event: x\ndata: 1\ndata: 2\n\ndata: 3\n\n", [("x", b"1\n2"), ("", b"3")]),
        (b"event: x\r\ndata: 1\r\ndata: 2\r\n\r\n", [("x", b"1\n2")]),
        (b"data: 1\rdata: 2\r\rdata: 3\r\r", [("", b"1\n2"), ("", b"3")]),
        (b"data: 1\r\n\ndata: 2\n\r\n", [("", b"1"), ("", b"2")]),
        (b": comment\n\n: more\ndata: a\n: inside\n\n", [("", b"a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [("", b"a")]),
        (b"data: a\n\n\xef\xbb\xbfdata: b\n\ndata: c\n\n", [("", b"a"), ("", b"c")]),
        (b"id: 7\nretry: 5\nunknown: x\ndata: a\n\n", [("", b"a")]),
        ("data: a\u2028b\u0085c\x0bd\n\n".encode(), [("", "a\u2028b\u0085c\x0bd".encode())]),
        (b"event: named\n\ndata: a\n\n", [("", b"a")]),
        (b"event:x\ndata: a\n\n", [("x", b"a")]),
        (b"event: first\nevent:  last\ndata: a\n\n", [(" last", b"a")]),
        ("event: n\u00e4me\ndata: a\n\n".encode(), [("n\u00e4me", b"a")]),
        (b"event: \xff\ndata: a\n\n", [("\ufffd", b"a")]),
        (b"data: last", [("", b"last")]),
        (b"event: x\ndata: last\n", [("x", b"last")]),
        (b"data:\n\n", [("", b"")]),
        (b"data\ndata: a\ndata\n\n", [("", b"\na\n")]),
        (b"event: x\nevent\ndata: a\n\ndatabase: b\n\n", [("", b"a")]),
        (b"data: \ndata: a\n\n", [("", b"\na")]),
        (b"", []),
        (b"\n\n\n", []),
    ],
)
def test_events_are_read_as_the_specification_says(data: bytes, events: list[tuple[str, bytes]], size: int) -> None:
    assert [(event.name, event.data) for event in read_events(SSEFraming(), data, size)] == events


def test_an_event_is_delivered_with_its_blank_line_and_not_with_the_next_event() -> None:
    framing = SSEFraming()
    assert framing.feed(b"data: a\r\n\r") == [Event("", b"a")]
    assert framing.feed(b"\n") == []
    assert framing.feed(b"data: b\n") == []
    assert framing.feed(b"\n") == [Event("", b"b")]


@pytest.mark.parametrize(
    ("data", "at_boundary"),
    [
        (b"", False),
        (b"data: a\n\n", True),
        (b"data: a\r\n\r\n", True),
        (b"data: a\r\n\r", False),
        (b"data: a\n", False),
        (b"event: x\n", False),
        (b"data: a\n\nda", False),
        (b": comment\n", True),
    ],
)
def test_a_boundary_is_where_no_event_is_unfinished(data: bytes, at_boundary: bool) -> None:
    framing = SSEFraming()
    framing.feed(data)
    assert framing.is_at_event_boundary is at_boundary


@pytest.mark.parametrize("rest_of_line", [b"", b"\ndata: b"])
def test_an_event_of_the_greatest_size_is_no_error_and_one_byte_more_is(rest_of_line: bytes) -> None:
    framing = SSEFraming()
    framing.feed(b"data: a" + rest_of_line)
    # A whole data line counts by its value and LINE_BYTES, one that goes on by its bytes.
    counted = 1 + LINE_BYTES + len(b"data: b") if rest_of_line else len(b"data: a")
    framing.feed(b"x" * (MAX_EVENT_BYTES - counted))
    assert framing.error is None
    framing.feed(b"x")
    assert framing.error is not None
    assert str(MAX_EVENT_BYTES) in framing.error.reason


@pytest.mark.parametrize("piece", [b"x" * 65536, b"data: " + b"x" * 65536 + b"\n"])
def test_an_event_that_does_not_end_is_an_error_before_it_fills_memory(piece: bytes) -> None:
    framing = SSEFraming()
    framing.feed(b"data: ")
    for _ in range(MAX_EVENT_BYTES // 65536 + 2):
        framing.feed(piece)
    assert framing.error is not None
    assert framing.error.status == 424


def test_the_bytes_of_an_event_count_from_its_first_line_on() -> None:
    framing = SSEFraming()
    for read in (b"data: z\n\ndata: " + b"x" * 1000 + b"\n", b"x" * (MAX_EVENT_BYTES - 1000 - LINE_BYTES)):
        framing.feed(read)
    assert framing.error is None
    framing.feed(b"x")
    assert framing.error is not None


def test_the_bytes_of_an_event_count_only_until_its_end() -> None:
    framing = SSEFraming()
    for read in (b"data: 0123456789\n", b"\n", b"x" * MAX_EVENT_BYTES):
        framing.feed(read)
    assert framing.error is None


def test_lines_of_nothing_count_as_well() -> None:
    framing = SSEFraming()
    for _ in range(MAX_EVENT_BYTES // LINE_BYTES // 1000 + 1):
        framing.feed(b"data:\n" * 1000)
    assert framing.error is not None


def test_many_large_events_are_no_error() -> None:
    framing = SSEFraming()
    for _ in range(MAX_EVENT_BYTES // 65536 + 2):
        assert len(framing.feed(b"data: " + b"x" * 65536 + b"\n\ndata: y\n")) == 1
        assert len(framing.feed(b"\n")) == 1
    assert framing.error is None


def test_many_long_lines_in_reads_of_their_own_are_no_error() -> None:
    framing = SSEFraming()
    for _ in range(MAX_EVENT_BYTES // 65536 + 2):
        framing.feed(b": " + b"x" * 65536)
        framing.feed(b"\n")
    assert framing.error is None
