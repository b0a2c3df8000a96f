"""Filters of streams: what is held back, what gets out, and that the cut of the text into pieces does not matter."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.chunks import ToolCall
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.predict.guardrails import stream_filters
from opensearch_ml_stream.connectors.predict.guardrails.patterns import GuardPattern
from opensearch_ml_stream.connectors.predict.guardrails.stream_filters import (
    HeldToolCalls,
    PatternFilter,
    SentenceCutter,
)

LONGEST = 3  # of the matches of SEARCHED
SEARCHED = [".*ab.*", ".*a.c.*", r".*\bab\b.*", ".*b{2,3}.*", ".*^ba.*", ".*cc$.*", "(?m).*^c$.*", ".*é.*|.*ca.*"]
WHOLE = ["ab.*", ".*c", "a[abc]*"]

texts = st.text("abcé \n", max_size=40)
patterns = st.lists(st.sampled_from(SEARCHED), min_size=1, max_size=3).map(
    lambda sources: [GuardPattern.compile(source) for source in sources]
)


def play(pattern_filter: PatternFilter, pieces: Sequence[str]) -> str:
    """All that comes out of the filter."""
    return "".join([*map(pattern_filter.feed, pieces), pattern_filter.close()])


@st.composite
def cuts(draw: st.DrawFn) -> list[str]:
    text = draw(texts)
    ends = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


@given(guard=patterns, pieces=cuts(), held=st.integers(LONGEST, 50))
def test_no_part_of_a_match_gets_out_and_nothing_else_is_lost_however_the_text_is_cut(
    guard: list[GuardPattern], pieces: list[str], held: int
) -> None:
    text = "".join(pieces)
    pattern_filter = PatternFilter(guard, held)
    out = play(pattern_filter, pieces)
    assert text.startswith(out)
    if not any(pattern.refuses(text.encode()) for pattern in guard):
        assert (out, pattern_filter.refused_by) == (text, None)
        return
    assert pattern_filter.refused_by is not None
    assert guard[pattern_filter.refused_by].refuses(text.encode())
    spans = [(start, start + length) for start in range(len(text)) for length in range(1, LONGEST + 1)]
    found = [start for start, end in spans if any(pattern.core.fullmatch(text, start, end) for pattern in guard)]  # type: ignore[union-attr]
    assert len(out) <= min(found)


@given(guard=patterns, whole=st.sampled_from(WHOLE), pieces=cuts())
def test_a_pattern_for_the_whole_text_holds_all_of_it_to_the_end(
    guard: list[GuardPattern], whole: str, pieces: list[str]
) -> None:
    text = "".join(pieces)
    guard = [*guard, GuardPattern.compile(whole)]
    pattern_filter = PatternFilter(guard, LONGEST)
    assert [pattern_filter.feed(piece) for piece in pieces] == [""] * len(pieces)
    refused = any(pattern.refuses(text.encode()) for pattern in guard)
    assert pattern_filter.close() == ("" if refused else text)
    assert (pattern_filter.refused_by is not None) is refused


def test_the_last_characters_are_held_back_until_the_end() -> None:
    pattern_filter = PatternFilter([GuardPattern.compile(".*bad.*")], 8)
    assert [pattern_filter.feed(piece) for piece in ("01234567", "89", "abc")] == ["", "01", "234"]
    assert pattern_filter.close() == "56789abc"


def test_after_a_match_nothing_comes_out_any_more() -> None:
    pattern_filter = PatternFilter([GuardPattern.compile(".*x.*"), GuardPattern.compile(".*bad.*")], 4)
    assert pattern_filter.feed("0123456789") == "012345"
    assert pattern_filter.feed("b") == "6"
    assert pattern_filter.feed("ad, and") == ""
    assert pattern_filter.refused_by == 1
    assert pattern_filter.feed("harmless text") + pattern_filter.close() == ""


def test_a_word_that_goes_on_is_not_taken_for_a_whole_word() -> None:
    pattern_filter = PatternFilter([GuardPattern.compile(r".*\bkill\b.*")], 1)
    assert play(pattern_filter, ["the s", "kill", "s to kill", "joy"]) == "the skills to killjoy"
    assert play(PatternFilter([GuardPattern.compile(r".*\bkill\b.*")], 8), ["to ", "kill"]) == ""


class CountingRegex:
    """A regular expression that finds nothing and counts the characters that it is asked to search."""

    searched = 0

    def search(self, text: str, start: int, end: int) -> None:
        self.searched += end - start


@pytest.mark.parametrize("piece", [1, 7, 5000])
@pytest.mark.parametrize("held", [0, 1, 256, 10_000])
def test_each_character_is_searched_a_limited_number_of_times(piece: int, held: int) -> None:
    core = CountingRegex()
    pattern_filter = PatternFilter([GuardPattern("", None, core)], held)
    length = 100_000
    assert play(pattern_filter, ["x" * piece] * (length // piece)) == "x" * (length // piece * piece)
    assert core.searched <= 17 * length + held


def test_a_text_that_is_too_long_to_be_held_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_filters, "MAX_HELD_CHARACTERS", 20)
    pattern_filter = PatternFilter([GuardPattern.compile("bad.*")], 1)
    assert pattern_filter.feed("x" * 20) == ""
    with pytest.raises(UpstreamError, match="more than 20 characters"):
        pattern_filter.feed("x" * 2)


@pytest.mark.parametrize(
    ("pieces", "sentences"),
    [
        (["One. Tw", "o! ", "Three? Four"], ["One.", " Two!", " Three?", " Four"]),
        (["a line\nanother\nand"], ["a line\nanother\n", "and"]),
        (["1.5 of them", ". "], ["1.5 of them.", " "]),
        (["你好。再", "见！好吗？"], ["你好。", "再见！好吗？"]),  # noqa: RUF001
        (["x" * 999, "y", "z"], ["x" * 999 + "y", "z"]),
        (["", ""], []),
    ],
)
def test_text_is_cut_at_the_ends_of_sentences_or_when_it_gets_long(pieces: list[str], sentences: list[str]) -> None:
    cutter = SentenceCutter()
    assert [text for text in [*map(cutter.feed, pieces), cutter.close()] if text] == sentences


def test_tool_calls_are_joined_from_their_fragments() -> None:
    calls = HeldToolCalls()
    calls.add([ToolCall(0, "call_1", "find", '{"a"'), ToolCall(1, None, "look")])
    calls.add([ToolCall(0, None, None, ": 1}"), ToolCall(1, "call_2", None, "{}")])
    assert calls.joined() == (ToolCall(0, "call_1", "find", '{"a": 1}'), ToolCall(1, "call_2", "look", "{}"))


def test_tool_calls_that_are_too_long_to_be_held_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_filters, "MAX_HELD_CHARACTERS", 20)
    calls = HeldToolCalls()
    with pytest.raises(UpstreamError, match="more than 20 characters"):
        calls.add([ToolCall(0, arguments="")] * 21)
