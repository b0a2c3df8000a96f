"""Bytes to events: server-sent events, NDJSON, JSON arrays, AWS event streams, and finding out which."""

import json
import time
from collections.abc import Callable
from zlib import crc32

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given, settings
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.decoding.contract import MAX_EVENT_BYTES, Event, Framing
from opensearch_ml_stream.connectors.decoding.framing.aws_eventstream import MAX_PAYLOAD_BYTES, AWSEventStreamFraming
from opensearch_ml_stream.connectors.decoding.framing.json_array import JSONArrayFraming
from opensearch_ml_stream.connectors.decoding.framing.ndjson import NDJSONFraming
from opensearch_ml_stream.connectors.decoding.framing.plain_text import PLAIN_TEXT, PlainTextFraming
from opensearch_ml_stream.connectors.decoding.framing.sniffing import SniffedFraming
from opensearch_ml_stream.connectors.decoding.framing.sse import SSEFraming
from opensearch_ml_stream.connectors.errors import StreamTruncated
from tests.providers.eventstream_frames import event, exception, frame


def frames_of(framing: Framing, data: bytes, size: int | None = None) -> list[Event]:
    size = size or max(len(data), 1)
    events: list[Event] = []
    for start in range(0, len(data), size):
        events += framing.feed(data[start : start + size])
    return events + framing.close()


def payloads(framing: Framing, data: bytes, size: int | None = None) -> list[bytes]:
    return [event.data for event in frames_of(framing, data, size)]


# Server-sent events


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
        (b"id: 7\nretry: 5\nunknown: x\ndata: a\n\n", [("", b"a")]),
        ("data: a\u2028b\u0085c\x0bd\n\n".encode(), [("", "a\u2028b\u0085c\x0bd".encode())]),
        (b"event: named\n\ndata: a\n\n", [("", b"a")]),
        (b"data: last", [("", b"last")]),
        (b"data:\n\n", [("", b"")]),
        (b"", []),
        (b"\n\n\n", []),
    ],
)
def test_server_sent_events_are_read_as_the_norm_says(data: bytes, events: list[tuple[str, bytes]], size: int) -> None:
    assert [tuple(event) for event in frames_of(SSEFraming(), data, size)] == events


def test_an_event_that_does_not_end_is_an_error_before_memory_is() -> None:
    for piece in (b"x" * 65536, b"data: " + b"x" * 65536 + b"\n"):
        framing = SSEFraming()
        framing.feed(b"data: ")
        for _ in range(MAX_EVENT_BYTES // 65536 + 2):
            framing.feed(piece)
        assert framing.error is not None
        assert framing.error.status == 424


def test_many_large_events_are_no_error() -> None:
    framing = SSEFraming()
    for _ in range(MAX_EVENT_BYTES // 65536 + 2):
        assert len(framing.feed(b"data: " + b"x" * 65536 + b"\n\ndata: y\n")) == 1
        assert len(framing.feed(b"\n")) == 1
    assert framing.error is None


# NDJSON and JSON arrays


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_every_line_of_ndjson_is_an_event_and_blank_ones_are_none(size: int) -> None:
    data = b'{"a":1}\n\n  \r\n{"b":"\xe2\x80\xa8"}\r\n{"c":3}'
    assert [json.loads(line) for line in payloads(NDJSONFraming(), data, size)] == [{"a": 1}, {"b": "\u2028"}, {"c": 3}]


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
def test_the_objects_of_an_array_come_out_however_it_is_written_and_cut(
    objects: list[dict[str, object]], size: int, indent: int | None
) -> None:
    data = json.dumps(objects, indent=indent, ensure_ascii=False).encode()
    framing = JSONArrayFraming()
    assert [json.loads(payload) for payload in payloads(framing, data, size)] == objects
    assert framing.error is None


def test_an_object_of_an_array_comes_with_its_last_brace_and_not_with_the_next_comma() -> None:
    assert JSONArrayFraming().feed(b'[{"a":1}') == [Event("", b'{"a":1}')]


def test_a_single_object_counts_as_one_event() -> None:
    assert payloads(JSONArrayFraming(), b' {"error": {"code": 429}} ', 3) == [b'{"error": {"code": 429}}']


@pytest.mark.parametrize("data", [b'[{"a":1}', b'[{"a":1},', b'[{"a', b'{"a":'])
def test_an_array_that_is_not_closed_is_truncated(data: bytes) -> None:
    framing = JSONArrayFraming()
    payloads(framing, data)
    assert isinstance(framing.error, StreamTruncated)


@pytest.mark.parametrize("data", [b"<html>", b"[1,2]", b"}", b'[{"a":1}] [ ] ]'])
def test_what_is_no_array_of_objects_is_an_error(data: bytes) -> None:
    framing = JSONArrayFraming()
    payloads(framing, data, 1)
    assert framing.error is not None
    assert not isinstance(framing.error, StreamTruncated)


# AWS event streams


header_values = st.text(max_size=30)
header_names = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1, max_size=20)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.dictionaries(header_names, header_values, max_size=4), st.binary(max_size=200)), max_size=4),
    st.integers(1, 64),
)
def test_frames_are_read_as_botocore_reads_them(messages: list[tuple[dict[str, str], bytes]], size: int) -> None:
    data = b"".join(
        frame({**headers, ":message-type": "event", ":event-type": "e"}, payload) for headers, payload in messages
    )
    theirs = EventStreamBuffer()
    theirs.add_data(data)
    expected = [Event(message.headers[":event-type"], message.payload) for message in theirs]
    framing = AWSEventStreamFraming()
    assert frames_of(framing, data, size) == expected
    assert framing.error is None


def test_headers_of_every_type_are_passed_over() -> None:
    headers = (
        b"\x01a\x00" b"\x01b\x01" b"\x01c\x02\x05" b"\x01d\x03\x00\x05" b"\x01e\x04\x00\x00\x00\x05"
        b"\x01f\x05" + bytes(8) + b"\x01g\x06\x00\x02xy" b"\x01h\x08" + bytes(8) + b"\x01i\x09" + bytes(16)
        + b"\x0b:event-type\x07\x00\x05chunk"
    )  # fmt: skip
    prelude = (len(headers) + 18).to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    message = prelude + crc32(prelude).to_bytes(4, "big") + headers + b"{}"
    data = message + crc32(message).to_bytes(4, "big")
    theirs = EventStreamBuffer()
    theirs.add_data(data)
    assert next(theirs).headers[":event-type"] == "chunk"
    assert AWSEventStreamFraming().feed(data) == [Event("chunk", b"{}")]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_changed_byte_is_an_error_and_never_an_event(draw: st.DataObject) -> None:
    first, second = event("contentBlockDelta", {"delta": {"text": "a"}}), event("messageStop", {"stopReason": "x"})
    position = draw.draw(st.integers(0, len(second) - 1))
    changed = second[:position] + bytes([second[position] ^ draw.draw(st.integers(1, 255))]) + second[position + 1 :]
    framing = AWSEventStreamFraming()
    assert framing.feed(first + changed) == framing.feed(b"") + AWSEventStreamFraming().feed(first)
    framing.close()
    assert framing.error is not None


def test_a_frame_that_announces_too_much_is_refused_at_its_prelude() -> None:
    prelude = (MAX_PAYLOAD_BYTES + 1000).to_bytes(4, "big") + (0).to_bytes(4, "big")
    framing = AWSEventStreamFraming()
    assert framing.feed(prelude + crc32(prelude).to_bytes(4, "big")) == []
    assert framing.error is not None


@pytest.mark.parametrize(
    ("name", "provider_status", "status"),
    [
        ("throttlingException", 429, 429),
        ("ThrottlingException", 429, 429),
        ("validationException", 400, 400),
        ("modelStreamErrorException", 424, 424),
        ("internalServerException", 500, 424),
        ("serviceUnavailableException", 503, 424),
        ("modelTimeoutException", 408, 424),
        ("ModelStreamError", 424, 424),
        ("somethingNewException", 500, 424),
    ],
)
def test_an_exception_frame_is_an_error_after_the_events_before_it(
    name: str, provider_status: int, status: int
) -> None:
    data = event("contentBlockDelta", {"delta": {"text": "a"}}) + exception(name, "too much")
    for size in (1, len(data)):
        framing = AWSEventStreamFraming()
        assert [event.name for event in frames_of(framing, data, size)] == ["contentBlockDelta"]
        assert framing.error is not None
        assert (framing.error.provider_status, framing.error.status) == (provider_status, status)
        assert framing.error.reason == "Error from remote service: too much"


def test_an_error_frame_is_an_error_with_its_message() -> None:
    framing = AWSEventStreamFraming()
    headers = {":message-type": "error", ":error-code": "InternalFailure", ":error-message": "it broke"}
    assert framing.feed(frame(headers, b"")) == []
    assert framing.error is not None
    assert framing.error.reason == "Error from remote service: it broke"


# Plain text, and detection


@settings(max_examples=100, deadline=None)
@given(st.text(min_size=1), st.integers(1, 5))
def test_plain_text_never_holds_half_a_character(text: str, size: int) -> None:
    pieces = [event.data.decode() for event in frames_of(PlainTextFraming(), text.encode(), size)]
    assert "".join(pieces) == text


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize(
    ("data", "first"),
    [
        (b'\n {"a":1}\n{"b":2}\n', Event("", b' {"a":1}')),
        (b'[{"a":1},\n{"b":2}]', Event("", b'{"a":1}')),
        (b"data: 1\n\ndata: 2\n\n", Event("", b"1")),
        (b"\xef\xbb\xbfdata: 1\n\n", Event("", b"1")),
        (b": hello\n\nevent: x\ndata: 1\n\n", Event("x", b"1")),
    ],
)
def test_the_first_bytes_tell_the_framing(data: bytes, first: Event, size: int) -> None:
    assert frames_of(SniffedFraming(), data, size)[0] == first


@pytest.mark.parametrize("text", ["dat", "data", "event and more", "Hello", "i"])
def test_anything_else_is_plain_text(text: str) -> None:
    for size in (1, 1000):
        events = frames_of(SniffedFraming(), text.encode(), size)
        assert {event.name for event in events} == {PLAIN_TEXT}
        assert b"".join(event.data for event in events) == text.encode()


@pytest.mark.parametrize(
    ("framing", "data"),
    [
        (SSEFraming, b"data: " + b"x" * 300_000 + b"\n\n"),
        (SSEFraming, b"data: x\n" * 40_000 + b"\n"),
        (NDJSONFraming, b'"' + b"x" * 300_000 + b'"\n'),
        (JSONArrayFraming, b'[{"a":"' + b"x" * 150_000 + b"{}" * 75_000 + b'"}]'),
        (AWSEventStreamFraming, event("chunk", b"x" * 300_000)),
        (SniffedFraming, b'{"a":"' + b"x" * 300_000 + b'"}\n'),
    ],
    ids=["sse", "sse lines", "ndjson", "json array", "event stream", "detected"],
)
def test_a_long_event_that_comes_byte_by_byte_costs_its_share(framing: Callable[[], Framing], data: bytes) -> None:
    begun = time.process_time()
    assert len(frames_of(framing(), data, 1)) == 1
    assert time.process_time() - begun < 3
