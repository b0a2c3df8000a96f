"""Fields of a provider's events, whatever their type."""

import pytest

from opensearch_ml_stream.connectors.decoding import event_fields

ODD = [7, 1.5, True, ["a"], {"a": 1}]


def test_text_is_a_string_or_nothing() -> None:
    assert event_fields.text("a") == "a"
    assert event_fields.text(None) == ""


@pytest.mark.parametrize("value", ODD)
def test_text_of_another_type_is_an_error_that_the_decoder_counts(value: object) -> None:
    with pytest.raises(TypeError):
        event_fields.text(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0), (12, 12), (True, None), (1.5, None), ("12", 12), ("", None), ("-1", None), ("1.5", None), (None, None),
        (-1, None), (2**53 - 1, 2**53 - 1), (2**53, 2**53 - 1), (10**30, 2**53 - 1), (1e30, 2**53 - 1), (-1e30, None),
        (float("inf"), None), (float("nan"), None),
    ],
)  # fmt: skip
def test_a_count_is_an_integer_that_makes_sense_or_none(value: object, expected: int | None) -> None:
    assert event_fields.count(value) == expected


@pytest.mark.parametrize(("value", "expected"), [("m", "m"), ("", None), (None, None), (7, None), (["m"], None)])
def test_a_name_is_a_string_that_is_not_empty_or_none(value: object, expected: str | None) -> None:
    assert event_fields.name(value) == expected


def test_a_name_is_cut_after_1000_characters() -> None:
    assert event_fields.name("n" * 1000 + "x") == "n" * 1000


@pytest.mark.parametrize("value", [None, "a", 7, [1]])
def test_a_mapping_is_an_object_or_empty(value: object) -> None:
    assert event_fields.mapping({"a": 1}) == {"a": 1}
    assert event_fields.mapping(value) == {}


@pytest.mark.parametrize(
    ("value", "expected"), [('{"a": 1}', '{"a": 1}'), (None, ""), ({"a": [1]}, '{"a":[1]}'), ([], "[]"), ("", "")]
)
def test_arguments_are_json_text_however_they_are_written(value: object, expected: str) -> None:
    assert event_fields.arguments(value) == expected
