"""Regular expressions by RE2."""

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.regex import MAX_PATTERN_CHARS, compile_regex


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
