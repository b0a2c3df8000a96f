"""Patterns of guardrails: what they refuse as a whole, and which of them can be searched in a stream."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.guardrails.patterns import GuardPattern
from opensearch_ml_stream.connectors.syntax.regex import compile_regex


@pytest.mark.parametrize(
    ("source", "refused", "passed"),
    [
        (".*kill.*", "how to kill a process", "nothing here"),
        ("no", "no", "no way"),
        ("no.*", "no way", "oh no"),
        (".*no", "oh no", "no way"),
        (".*bomb.*", "first line\na bomb\nlast line", "first line\nlast line"),
        ("a.b", "a\nb", "ab"),
    ],
)
def test_a_pattern_refuses_the_text_that_it_matches_as_a_whole_newlines_included(
    source: str, refused: str, passed: str
) -> None:
    pattern = GuardPattern.compile(source)
    assert pattern.refuses(refused.encode())
    assert not pattern.refuses(passed.encode())


@pytest.mark.parametrize(
    ("source", "core"),
    [
        (".*bad.*", "bad"),
        (".*?bad.*?", "bad"),
        (".*.*bad.*.*", "bad"),
        ("^.*bad.*$", "bad"),
        (r"\A.*bad.*\z", "bad"),
        (r"[\s\S]*bad[\S\s]*", "bad"),
        ("(?i).*bad.*", "(?i)bad"),
        (".*", ""),
        ("(?s).*", "(?s)"),
        (".*a.*|.*b.*", "a|b"),
        (".*(a|b.*).*", "(a|b.*)"),
        (r".*\bkill\b.*", r"\bkill\b"),
        (".*[|(].*", "[|(]"),
        (".*[]|].*", "[]|]"),
        (".*[[:alpha:]|].*", "[[:alpha:]|]"),
        (r".*\Q(|\E.*", r"\Q(|\E"),
        (r".*\(.*", r"\("),
    ],
)
def test_any_text_around_a_pattern_is_left_out_of_what_is_searched(source: str, core: str) -> None:
    found = GuardPattern.compile(source).core
    assert found is not None
    assert found.pattern == core


@pytest.mark.parametrize(
    "source",
    ["bad", "bad.*", ".*bad", r".*bad\.*", r"\.*bad.*", ".*a|b.*", ".*a.*|b", "", "(.*)a(.*)", ".*a.+", ".+a.*", "a|"],
)
def test_a_pattern_that_is_bound_to_an_end_of_the_text_needs_the_whole_text(source: str) -> None:
    assert GuardPattern.compile(source).core is None


_PIECES = st.sampled_from(["a", "b", ".", ".*", ".*?", "|", "^", "$", r"\b", "(a|b)", "(?i)", "[ab]", r"\.", "b?", " "])


@given(source=st.lists(_PIECES, max_size=6).map("".join), text=st.text("abA. \n", max_size=8))
def test_searching_the_core_decides_as_matching_the_whole_text_does(source: str, text: str) -> None:
    try:
        pattern = GuardPattern.compile(f".*{source}.*")
        whole = compile_regex(f".*{source}.*", dot_all=True)
    except InvalidRequest:  # such as two repetitions in a row
        return
    assert pattern.refuses(text.encode()) is (whole.fullmatch(text) is not None)


def test_a_pattern_that_cannot_be_compiled_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"^The regular expression \[\(\] cannot be used"):
        GuardPattern.compile("(")
