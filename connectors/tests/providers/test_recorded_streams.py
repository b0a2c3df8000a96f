"""Every recorded provider stream, whole, cut everywhere and cut short."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.chunks import FINISH_REASONS, Ending
from opensearch_ml_stream.connectors.decoding.contract import Framing
from opensearch_ml_stream.connectors.errors import StreamTruncated
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from tests.providers.recorded_streams import (
    ALL_STREAMS,
    STREAMS,
    Recorded,
    ending_fields,
    join_chunks,
    outcome_fields,
    play,
)

every_recording = pytest.mark.parametrize("recorded", ALL_STREAMS, ids=lambda recorded: recorded.name)


def _event_ends(recorded: Recorded) -> list[int]:
    """After which bytes an event is whole, by feeding them one by one."""
    framing: Framing = SHIPPED.presets[recorded.preset].framing()
    ends: list[int] = []
    for position in range(len(recorded.data)):
        events: list[Event] = framing.feed(recorded.data[position : position + 1])
        ends += [position + 1] * len(events)
    return ends


@every_recording
def test_a_recorded_stream_gives_what_the_provider_wrote(recorded: Recorded) -> None:
    chunks, outcome = play(recorded.decoder(), [recorded.data])
    assert join_chunks(chunks) == (recorded.text, recorded.reasoning, recorded.tools)
    finish, native, usage, model = ending_fields(outcome)
    assert (finish, native, model) == (recorded.finish, recorded.native, recorded.model)
    assert finish in FINISH_REASONS
    if recorded.usage is not None:
        assert usage == recorded.usage


@every_recording
def test_the_size_of_the_pieces_changes_nothing(recorded: Recorded) -> None:
    data = recorded.data
    chunks, outcome = play(recorded.decoder(), [data])
    sizes = [*range(1, 80), *range(80, len(data), 37)]
    for size in sizes:
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
        cut_chunks, cut_outcome = play(recorded.decoder(), pieces)
        assert (cut_chunks, outcome_fields(cut_outcome)) == (chunks, outcome_fields(outcome)), size


@every_recording
def test_a_cut_at_any_byte_changes_nothing(recorded: Recorded) -> None:
    data = recorded.data
    chunks, outcome = play(recorded.decoder(), [data])
    for position in range(1, len(data)):
        cut_chunks, cut_outcome = play(recorded.decoder(), [data[:position], data[position:]])
        assert (cut_chunks, outcome_fields(cut_outcome)) == (chunks, outcome_fields(outcome)), position


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_random_cuts_change_nothing(draw: st.DataObject) -> None:
    recorded = draw.draw(st.sampled_from(ALL_STREAMS))
    data = recorded.data
    cuts = sorted(draw.draw(st.sets(st.integers(0, len(data)), max_size=30)))
    pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    chunks, outcome = play(recorded.decoder(), pieces)
    whole_chunks, whole_outcome = play(recorded.decoder(), [data])
    assert chunks == whole_chunks
    assert outcome_fields(outcome) == outcome_fields(whole_outcome)


@every_recording
def test_a_stream_that_ends_after_any_event_but_the_last_is_truncated(recorded: Recorded) -> None:
    ends = _event_ends(recorded)
    whole, _ = play(recorded.decoder(), [recorded.data])
    complete = next(
        number for number in range(1, len(ends) + 1)
        if _fed(recorded, ends[number - 1]) or number == len(ends)
    )  # fmt: skip
    for number in range(complete):
        end = ends[number - 1] if number else 0
        chunks, outcome = play(recorded.decoder(), [recorded.data[:end]])
        assert chunks == whole[: len(chunks)]
        good = recorded.good_from is not None and number >= recorded.good_from
        assert isinstance(outcome, StreamTruncated) != good, number


@every_recording
def test_a_stream_is_ending_once_its_finish_reason_has_come(recorded: Recorded) -> None:
    """So nobody waits long for a terminator that does not come; the end of the body would be a good end then."""
    decoder = recorded.decoder()
    start = 0
    for number, end in enumerate(_event_ends(recorded), 1):
        decoder.feed(recorded.data[start:end])
        start = end
        _, outcome = play(recorded.decoder(), [recorded.data[:end]])
        may_end_anywhere = recorded.good_from == 0 or recorded.native is None
        if not may_end_anywhere or decoder.outcome is not None:
            assert decoder.is_ending == isinstance(outcome, Ending), number
    decoder.close()
    assert decoder.is_ending


def _fed(recorded: Recorded, end: int) -> bool:
    decoder = recorded.decoder()
    decoder.feed(recorded.data[:end])
    return decoder.outcome is not None


@every_recording
def test_nothing_comes_after_the_end(recorded: Recorded) -> None:
    decoder = recorded.decoder()
    play(decoder, [recorded.data])
    outcome = decoder.outcome
    assert decoder.feed(recorded.data) == []
    assert decoder.close() == []
    assert decoder.outcome is outcome


@pytest.mark.parametrize("end_of_line", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_any_end_of_line_and_a_byte_order_mark_make_the_same_stream(end_of_line: bytes, mark: bytes) -> None:
    for recorded in ALL_STREAMS:
        if recorded.data[:5] not in (b"data:", b"event"):
            continue
        data = mark + recorded.data.replace(b"\r", b"").replace(b"\n", end_of_line)
        expected, outcome = play(recorded.decoder(), [recorded.data])
        for size in (1, 2, 3, 5, 17, len(data)):
            pieces = [data[start : start + size] for start in range(0, len(data), size)]
            chunks, other = play(recorded.decoder(), pieces)
            assert (chunks, outcome_fields(other)) == (expected, outcome_fields(outcome)), (recorded.name, size)


def test_a_last_event_without_its_blank_line_counts() -> None:
    for recorded in ALL_STREAMS:
        if recorded.data.endswith(b"\n"):
            expected, outcome = play(recorded.decoder(), [recorded.data])
            chunks, other = play(recorded.decoder(), [recorded.data.rstrip(b"\r\n")])
            assert (chunks, outcome_fields(other)) == (expected, outcome_fields(outcome)), recorded.name


def test_half_an_event_at_the_end_is_a_truncation_even_where_the_end_of_the_body_is_the_end() -> None:
    recorded = STREAMS["mlserver-infer"]
    _, outcome = play(recorded.decoder(), [recorded.data[:-20]])
    assert isinstance(outcome, StreamTruncated)
