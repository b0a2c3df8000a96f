"""AWS event streams, cut anywhere, against botocore's reader."""

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given, settings
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.decoding.aws_eventstream import MAX_HEADERS_BYTES, AWSEventStreamFraming
from opensearch_ml_stream.connectors.decoding.contract import MAX_EVENT_BYTES
from opensearch_ml_stream.connectors.errors import StreamTruncated, UpstreamError
from opensearch_ml_stream.connectors.event import Event
from tests.decoding.split_reads import read_events
from tests.providers.eventstream_frames import event, exception, frame, frame_of_bytes, prelude, string_header

HEADERS_OF_EVERY_TYPE = (
    b"\x01a\x00" b"\x01b\x01" b"\x01c\x02\x05" b"\x01d\x03\x00\x05" b"\x01e\x04\x00\x00\x00\x05"
    b"\x01f\x05" + bytes(8) + b"\x01g\x06\x00\x02xy" b"\x01h\x08" + bytes(8) + b"\x01i\x09" + bytes(16)
)  # fmt: skip
header_values = st.text(max_size=30)
header_names = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1, max_size=20)


def error_of(data: bytes) -> UpstreamError:
    """The error of a body without events."""
    framing = AWSEventStreamFraming()
    assert framing.feed(data) == []
    assert framing.error is not None
    return framing.error


def botocore_buffer(data: bytes) -> EventStreamBuffer:
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    return buffer


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.dictionaries(header_names, header_values, max_size=4), st.binary(max_size=200)), max_size=4),
    st.integers(1, 64),
)
def test_frames_are_read_as_botocore_reads_them(messages: list[tuple[dict[str, str], bytes]], size: int) -> None:
    data = b"".join(
        frame({**headers, ":message-type": "event", ":event-type": "e"}, payload) for headers, payload in messages
    )
    expected = [Event(message.headers[":event-type"], message.payload) for message in botocore_buffer(data)]
    framing = AWSEventStreamFraming()
    assert read_events(framing, data, size) == expected
    assert framing.error is None


def test_headers_of_every_type_are_passed_over() -> None:
    data = frame_of_bytes(HEADERS_OF_EVERY_TYPE + string_header(b":event-type", b"chunk"), b"{}")
    assert next(botocore_buffer(data)).headers[":event-type"] == "chunk"
    assert AWSEventStreamFraming().feed(data) == [Event("chunk", b"{}")]


def test_a_frame_without_headers_is_an_event_without_a_name() -> None:
    assert AWSEventStreamFraming().feed(frame({}, b"{}")) == [Event("", b"{}")]
    assert AWSEventStreamFraming().feed(frame({}, b"")) == [Event("", b"")]


def test_an_event_is_delivered_with_its_last_byte() -> None:
    framing, data = AWSEventStreamFraming(), event("chunk", b"{}")
    assert framing.feed(data[:-1]) == []
    assert framing.feed(data[-1:]) == [Event("chunk", b"{}")]
    framing.close()
    assert framing.error is None


@pytest.mark.parametrize("length", [1, 11, 12, 50])
def test_a_body_that_ends_within_a_frame_is_truncated(length: int) -> None:
    framing, data = AWSEventStreamFraming(), event("chunk", b"{}")
    assert read_events(framing, data + data[:length]) == [Event("chunk", b"{}")]
    assert isinstance(framing.error, StreamTruncated)


def test_an_error_is_not_replaced_by_the_truncation_after_it() -> None:
    framing = AWSEventStreamFraming()
    framing.feed(exception("throttlingException", "slow down") + b"rest")
    framing.close()
    assert framing.error is not None
    assert framing.error.status == 429
    assert framing.feed(event("chunk", b"{}")) == []


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_changed_byte_is_an_error_and_never_an_event(draw: st.DataObject) -> None:
    first, second = event("contentBlockDelta", {"delta": {"text": "a"}}), event("messageStop", {"stopReason": "x"})
    position = draw.draw(st.integers(0, len(second) - 1))
    changed = second[:position] + bytes([second[position] ^ draw.draw(st.integers(1, 255))]) + second[position + 1 :]
    framing = AWSEventStreamFraming()
    assert framing.feed(first + changed) == AWSEventStreamFraming().feed(first)
    framing.close()
    assert framing.error is not None


@pytest.mark.parametrize("position", range(8))
def test_a_changed_length_is_an_error_at_once(position: int) -> None:
    data = bytearray(event("chunk", b"{}"))
    data[position] ^= 1
    assert "checksum of a frame's prelude" in error_of(bytes(data[:12])).reason


@pytest.mark.parametrize("position", [12, -5, -1])
def test_a_changed_payload_or_checksum_is_an_error(position: int) -> None:
    data = bytearray(event("chunk", b"{}"))
    data[position] ^= 1
    assert "the checksum of a frame is wrong" in error_of(bytes(data)).reason


@pytest.mark.parametrize(
    ("total", "headers"),
    [(MAX_EVENT_BYTES + 16, 0), (MAX_EVENT_BYTES + 16 + 7, 7), (MAX_HEADERS_BYTES + 16, MAX_HEADERS_BYTES)],
)
def test_a_frame_of_the_greatest_size_is_no_error_and_one_byte_more_is_one(total: int, headers: int) -> None:
    framing = AWSEventStreamFraming()
    framing.feed(prelude(total, headers))
    assert framing.error is None
    assert list(botocore_buffer(prelude(total, headers))) == []
    assert "more than" in error_of(prelude(total + 1, headers + (headers == MAX_HEADERS_BYTES))).reason


@pytest.mark.parametrize(("total", "headers"), [(16, 0), (20, 4)])
def test_a_frame_that_is_shorter_than_its_headers_is_an_error(total: int, headers: int) -> None:
    framing = AWSEventStreamFraming()
    framing.feed(prelude(total, headers))
    assert framing.error is None
    assert "shorter than its headers" in error_of(prelude(total - 1, headers)).reason


@pytest.mark.parametrize(
    "headers",
    [
        b"\x01a",  # no type
        b"\x05a\x00",  # a name that goes on behind the headers
        b"\x01a\x0a",  # an unknown type
        b"\x01a\x07\x00",  # half of a length
        b"\x01a\x07\x00\x05bc",  # a value that goes on behind the headers
        b"\x01a\x04\x00\x00",  # half of an integer
        string_header(b"a", b"\xff"),
        string_header(b"\xff", b"a"),
        string_header(b"a", b"1") * 2,
        b"\x01a\x00\x01a\x01",  # a name twice, though neither value is a string
    ],
)  # fmt: skip
def test_headers_that_cannot_be_read_are_an_error(headers: bytes) -> None:
    assert "headers cannot be read" in error_of(frame_of_bytes(headers, b"{}")).reason


@pytest.mark.parametrize(
    ("name", "provider_status", "status"),
    [
        ("accessDeniedException", 403, 424),
        ("internalServerException", 500, 424),
        ("internalStreamFailure", 500, 424),
        ("modelNotReadyException", 429, 429),
        ("modelStreamError", 424, 424),
        ("ModelStreamError", 424, 424),
        ("modelStreamErrorException", 424, 424),
        ("modelTimeoutException", 408, 424),
        ("resourceNotFoundException", 404, 424),
        ("serviceQuotaExceededException", 400, 400),
        ("serviceUnavailableException", 503, 424),
        ("throttlingException", 429, 429),
        ("ThrottlingException", 429, 429),
        ("validationException", 400, 400),
        ("somethingNewException", 500, 424),
        ("", 500, 424),
    ],
)
def test_an_exception_frame_is_an_error_after_the_events_before_it(
    name: str, provider_status: int, status: int
) -> None:
    data = event("contentBlockDelta", {"delta": {"text": "a"}}) + exception(name, "too much")
    for size in (1, len(data)):
        framing = AWSEventStreamFraming()
        assert [event.name for event in read_events(framing, data, size)] == ["contentBlockDelta"]
        assert framing.error is not None
        assert (framing.error.provider_status, framing.error.status) == (provider_status, status)
        assert framing.error.reason == "Error from remote service: too much"
        assert framing.error.provider.code == (name or None)
        throttled = name.lower() == "throttlingexception"
        assert framing.error.type == ("remote_connector_throttling_exception" if throttled else "status_exception")


def test_an_exception_without_a_name_and_a_message_says_so() -> None:
    error = error_of(frame({":message-type": "exception"}, b"{}"))
    assert error.reason == "Error from remote service: it gives no reason"


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b'{"message":"a"}', "a"),
        (b'{"Message":"a"}', "a"),
        (b'{"originalMessage":"a","originalStatusCode":400}', "a"),
        (b'{"message":"a","Message":"b","originalMessage":"c"}', "a"),
        (b'{"message":{"a":1}}', "validationException"),
        (b"{}", "validationException"),
        (b"[1]", "validationException"),
        (b"not JSON", "validationException"),
    ],
)
def test_the_message_of_an_exception_is_its_reason_and_its_name_where_it_has_none(payload: bytes, message: str) -> None:
    headers = {":message-type": "exception", ":exception-type": "validationException"}
    assert error_of(frame(headers, payload)).reason == f"Error from remote service: {message}"


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({":error-code": "InternalFailure", ":error-message": "it broke"}, "it broke"),
        ({":error-code": "InternalFailure"}, "InternalFailure"),
        ({}, "it gives no reason"),
    ],
)
def test_an_error_frame_is_an_error_with_its_message(headers: dict[str, str], message: str) -> None:
    error = error_of(frame({":message-type": "error", **headers}, b""))
    assert (error.reason, error.provider_status) == (f"Error from remote service: {message}", 500)
