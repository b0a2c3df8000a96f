"""The search for slow inputs finds what is slow, and what fails."""

import json

import pytest

from tests.slow_inputs.search import Subject, check, search

pytestmark = pytest.mark.slow

_TEXT = {"text": ["a", "b", "<text><text>"], "pattern": ["a", "<pattern>*", "(<pattern>)", "<pattern>b"]}
_ARRAYS = {"array": ["[]", "[<items>]"], "items": ["<array>", "0", "<items>,<items>"]}


def _cubic(text: str) -> None:
    for start in range(len(text)):
        for end in range(start, len(text)):
            text[start:end].count("ab")


def _fails_on_a_deep_input(text: str) -> None:
    if "(((((" in text:
        raise KeyError("too deep")


def test_cubic_time_is_found_and_its_input_is_shown() -> None:
    finding = search(Subject("cubic", _TEXT, ("text",), _cubic), seconds=20)
    assert finding is not None and finding.measurement.seconds > 0.05
    assert str(finding).startswith("cubic('") and "ms; allowed are 50" in str(finding)


def test_an_unexpected_error_is_found_and_its_input_made_small() -> None:
    subject = Subject("fails", _TEXT, ("pattern",), _fails_on_a_deep_input)
    with pytest.raises(AssertionError, match=r"fails\('\({5}a.*raised KeyError"):
        check(subject)


def test_what_is_linear_passes() -> None:
    check(Subject("json", _ARRAYS, ("array",), json.loads, (RecursionError,)))


def test_a_bound_holds_for_each_started_mebibyte() -> None:
    subject = Subject("any", _TEXT, ("text",), str)
    assert [subject.allowed_seconds(size) for size in (0, (1 << 20) - 1, 1 << 20)] == [0.05, 0.05, 0.1]


def test_a_symbol_without_an_end_is_refused() -> None:
    with pytest.raises(AssertionError, match="has no end"):
        check(Subject("endless", {"text": ["a<text>"]}, ("text",), str))
