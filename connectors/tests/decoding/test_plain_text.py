"""Plain text, cut anywhere."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.decoding.plain_text import PlainTextFraming
from opensearch_ml_stream.connectors.errors import StreamTruncated
from tests.decoding.split_reads import read_events

CHARACTERS = ["a", "\x7f", "\x80", "\u00e9", "\u07ff", "\u0800", "\u4e16", "\uffff", "\U00010000", "\U0010ffff"]


@settings(max_examples=100, deadline=None)
@given(st.text(min_size=1), st.integers(1, 5))
def test_an_event_never_holds_a_part_of_a_character(text: str, size: int) -> None:
    pieces = [event.data.decode() for event in read_events(PlainTextFraming(), text.encode(), size)]
    assert "".join(pieces) == text.removeprefix("\ufeff")


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_byte_order_mark_before_the_text_is_none_of_it(size: int) -> None:
    data = "\ufeffa\ufeff".encode()
    assert b"".join(event.data for event in read_events(PlainTextFraming(), data, size)) == "a\ufeff".encode()


@pytest.mark.parametrize("character", CHARACTERS)
def test_a_character_is_delivered_with_its_last_byte(character: str) -> None:
    framing, data = PlainTextFraming(), character.encode()
    for byte in data[:-1]:
        assert framing.feed(bytes([byte])) == []
    assert [event.data for event in framing.feed(data[-1:])] == [data]
    framing.close()
    assert framing.error is None


def test_text_goes_out_without_the_character_that_is_not_finished() -> None:
    framing = PlainTextFraming()
    assert [event.data for event in framing.feed("ab\U0001f600".encode()[:5])] == [b"ab"]
    framing.close()
    assert isinstance(framing.error, StreamTruncated)


def test_bytes_that_are_no_utf8_are_not_held_back() -> None:
    assert [event.data for event in PlainTextFraming().feed(b"a\x80\x80\x80\x80")] == [b"a\x80\x80\x80\x80"]
    assert [event.data for event in PlainTextFraming().feed(b"\xc3\xa9\x80")] == [b"\xc3\xa9\x80"]
