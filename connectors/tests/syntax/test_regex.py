"""Regular expressions by RE2."""

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.regex import (
    MAX_GROUPS,
    MAX_PATTERN_CHARS,
    MAX_UNICODE_CLASSES,
    compile_regex,
)


def test_a_pattern_of_the_greatest_length_is_compiled_and_a_longer_one_is_refused() -> None:
    assert compile_regex("a" * MAX_PATTERN_CHARS).fullmatch("a") is None
    with pytest.raises(InvalidRequest, match=f"{MAX_PATTERN_CHARS} characters; this one has {MAX_PATTERN_CHARS + 1}"):
        compile_regex("a" * (MAX_PATTERN_CHARS + 1))


def test_a_dot_matches_a_line_end_and_case_is_ignored_only_where_asked() -> None:
    assert compile_regex("a.B").fullmatch("a\nB") is None
    assert compile_regex("a.B", dot_all=True).fullmatch("a\nB") is not None
    assert compile_regex("a.B").fullmatch("A_b") is None
    assert compile_regex("a.B", ignore_case=True).fullmatch("A_b") is not None


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "(?<!a)b"])
def test_what_re2_does_not_take_is_refused_with_the_pattern(pattern: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        compile_regex(pattern)
    assert f"[{pattern}]" in caught.value.reason


def test_half_a_surrogate_pair_is_refused_in_a_pattern_and_a_question_mark_in_a_text() -> None:
    with pytest.raises(InvalidRequest, match="holds half of a surrogate pair"):
        compile_regex("a\ud800")
    match = compile_regex("b+").search("a\ud800é\udfffbb")
    assert match.span() == (4, 6)
    assert compile_regex("a.b").fullmatch("a\ud800b").group() == "a?b"


def test_positions_bound_what_is_searched_in_strings_and_in_bytes() -> None:
    regex = compile_regex("b")
    assert regex.search("ébab", 2).span() == (3, 4)
    assert regex.search("ébab", 2, 3) is None
    assert regex.search("éb".encode()).span() == (2, 3)
    assert regex.fullmatch("abc", 1, 2) is not None


def test_a_pattern_of_many_instructions_is_refused_for_a_text_that_is_too_long_for_it() -> None:
    regex = compile_regex("[ab]*a[ab]{1000}")
    assert regex.search("ab" * 20_000) is not None
    with pytest.raises(InvalidRequest, match=r"of \d+ instructions can be used on \d+ bytes here; the text has 80000"):
        regex.search("ab" * 40_000)
    assert compile_regex("a+b").search("a" * (5 << 20)) is None


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("()" * (MAX_GROUPS + 1), "may have 100 groups; this one has 101"),
        ("\\pL" * (MAX_UNICODE_CLASSES + 1), r"may have 50 Unicode classes such as \\p\{L\}"),
        ("((a{100}){100}){100}", "cannot be used: "),
        ("(?:\\pL{100}){9}", "cannot be used: pattern too large"),
        ("(" * 9000, "cannot be used: "),
    ],
)
def test_a_pattern_that_compiles_into_too_much_is_refused(pattern: str, reason: str) -> None:
    compile_regex("()" * MAX_GROUPS)
    with pytest.raises(InvalidRequest, match=reason):
        compile_regex(pattern)


@pytest.mark.parametrize(
    ("pattern", "is_dear"), [("a.*b|a", True), ("a(.*b)?", True), ("a|bc", False), ("a[^b]*b?", False)]
)
def test_only_a_pattern_that_may_look_far_behind_each_match_is_paid_for_the_rest_of_the_text(
    pattern: str, is_dear: bool
) -> None:
    steps: list[int] = []
    text = "a" + "c" * 100_000
    next(compile_regex(pattern).finditer(text, steps.append))
    assert (steps[1] > 500) == is_dear
