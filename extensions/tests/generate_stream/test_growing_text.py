"""The events of `/generate-stream`: the whole text so far in each, at a cost that is linear in the text."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, TextRun, ToolCall
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.extensions.generate_stream.growing_text import MAX_TEXT_BYTES, GrowingText

DONE = b"data: [DONE]\n\n"
REASONING: Chunks = [Chunk(reasoning="hmm", tool_calls=(ToolCall(0, "c", "f", "{}"),))]


def never() -> None:
    raise AssertionError("the text is not too long")


def poster() -> GrowingText:
    return GrowingText(never)


def event_source() -> GrowingText:
    return GrowingText(never, event_id=True)


def texts(written: bytes) -> list[Any]:
    """The text of each event, as a page reads it."""
    blocks = written.decode().split("\n\n")
    return [json.loads(block.removeprefix("data: "))["text"] for block in blocks if block.startswith("data: {")]


def test_each_read_is_one_event_with_all_the_text_so_far() -> None:
    wire = poster()
    assert wire.chunks([Chunk("What"), Chunk(" is")]) == b'data: {"text": "What is"}\n\n'
    assert wire.chunks(TextRun(b' \\"the\\"\0 capital')) == b'data: {"text": "What is \\"the\\" capital"}\n\n'
    assert wire.last([Chunk("?")], Ending(), {}) == b'data: {"text": "What is \\"the\\" capital?"}\n\n' + DONE


def test_the_end_repeats_no_text_that_was_sent() -> None:
    wire = poster()
    wire.chunks([Chunk("Hi")])
    assert wire.last([], Ending(), {"model_id": "m1"}) == DONE


@pytest.mark.parametrize("reason", ["length", "content_filter", "tool_calls"])
def test_a_response_that_is_not_whole_says_why(reason: str) -> None:
    wire = poster()
    wire.chunks([Chunk("Hi")])
    assert (
        wire.last([], Ending(reason), {}) == b'data: {"text": "Hi", "finish_reason": "%b"}\n\n' % reason.encode() + DONE
    )


def test_an_error_keeps_the_text_and_is_no_end() -> None:
    wire = poster()
    wire.chunks([Chunk("Hi")])
    written = wire.error(UpstreamError('the "provider" failed'))
    assert written == b'data: {"text": "Hi", "error": "the \\"provider\\" failed", "status": 424}\n\n'


def test_only_the_first_event_for_an_event_source_has_an_id() -> None:
    wire = event_source()
    assert wire.chunks([Chunk("a")]) == b'id: 1\ndata: {"text": "a"}\n\n'
    assert wire.chunks([Chunk("b")]) == b'data: {"text": "ab"}\n\n'


@pytest.mark.parametrize(
    "first",
    [
        lambda wire: wire.heartbeat,
        lambda wire: wire.chunks(REASONING),
        lambda wire: wire.last([], Ending(), {}),
        lambda wire: wire.error(UpstreamError("x")),
    ],
    ids=["heartbeat", "reasoning", "end", "error"],
)
def test_an_event_source_has_an_id_whatever_comes_first(first: Any) -> None:
    assert first(event_source()).startswith(b"id: 1\ndata: ")
    assert b"id:" not in first(poster())


def test_what_adds_no_text_is_a_comment_apart_from_the_events_of_hand_written_readers() -> None:
    wire = poster()
    assert (wire.chunks(REASONING), wire.heartbeat) == (b":\n\n", b": ping\n\n")


def test_no_comment_makes_an_event_for_a_reader_that_has_seen_an_id() -> None:
    wire = event_source()
    wire.chunks([Chunk("a")])
    assert (wire.chunks(REASONING), wire.heartbeat) == (b":\n", b": ping\n")


@given(parts=st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1), data=st.data())
def test_the_texts_grow_up_to_the_whole_response(parts: list[str], data: st.DataObject) -> None:
    wire, written = poster(), b""
    for part in parts:
        as_run = data.draw(st.booleans())
        written += wire.chunks(TextRun(json.dumps(part)[1:-1].encode()) if as_run else [Chunk(part)])
    seen = texts(written + wire.last([], Ending(), {}))
    assert seen[-1] == "".join(parts)
    assert all(later.startswith(text) and later != text for text, later in pairwise(seen))


def test_a_short_text_is_sent_with_every_token_and_a_long_one_costs_257_bytes_a_byte_at_most() -> None:
    wire = poster()
    sent = [wire.chunks([Chunk("word ")]) for _ in range(20_000)]
    assert all(event.startswith(b"data: ") for event in sent[:51])
    assert len(texts(sent[9_999] + sent[10_000] + sent[10_001])) <= 1
    assert sum(map(len, sent)) < 257 * len("word ") * 20_000
    whole = len("word ") * 20_000
    shown = max(map(len, sent[-80:])) - len(b'data: {"text": ""}\n\n')
    assert whole - shown <= whole / 256 + len("word ")  # a reader is never further behind
    assert texts(wire.last([], Ending(), {})) in ([], ["word " * 20_000])


def test_a_text_without_end_is_reported_once_and_grows_no_further() -> None:
    reports: list[str] = []
    wire = GrowingText(lambda: reports.append("too long"))
    for _ in range(12):
        wire.chunks([Chunk("x" * 100_000)])
    assert reports == ["too long"]
    assert len(wire.error(UpstreamError("too long"))) < MAX_TEXT_BYTES + 100_100
