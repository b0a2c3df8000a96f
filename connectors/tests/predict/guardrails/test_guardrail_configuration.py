"""Guardrails: how they are read, and which responses of a guard model accept a text."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.guardrails.configuration import (
    Guardrails,
    LocalGuard,
    ModelGuard,
    StopWords,
    is_accepted,
    read_guardrails,
)
from opensearch_ml_stream.connectors.predict.guardrails.patterns import GuardPattern


def test_local_guardrails_are_read_with_their_stop_words() -> None:
    words = {"index_name": "words", "source_fields": ["title"]}
    document = {"type": "local_regex", "input_guardrail": {"regex": [".*bad.*"], "stop_words": [words]}}
    local = LocalGuard((GuardPattern.compile(".*bad.*"),), (StopWords("words", ("title",)),))
    assert read_guardrails(document) == Guardrails(input=local)


def test_model_guardrails_are_read_for_either_side() -> None:
    guard = {"model_id": "m", "response_filter": "$.a", "response_validation_regex": "yes"}
    expected = Guardrails(output=ModelGuard("m", "$.a", "yes"))
    assert read_guardrails({"type": "model", "output_guardrail": guard}) == expected


def test_a_guard_model_without_a_filter_is_asked_for_its_whole_response() -> None:
    guard = {"model_id": "m", "response_validation_regex": "yes"}
    assert read_guardrails({"type": "model", "input_guardrail": guard}) == Guardrails(ModelGuard("m", None, "yes"))


def test_no_guardrails_are_none() -> None:
    assert read_guardrails(None) == read_guardrails({}) == Guardrails(None, None)


@pytest.mark.parametrize(
    ("response_filter", "response", "accepted"),
    [
        ("$.response", {"response": "accept"}, True),
        ("$.response", {"response": "I accept"}, False),
        ("$.response", {"other": "accept"}, False),
        (None, "accept", True),
        ("$.response", {"response": "reject"}, False),
        (None, {"response": "accept"}, False),
    ],
)
def test_a_guard_models_response_must_match_or_the_text_is_not_accepted(
    response_filter: str | None, response: Any, accepted: bool
) -> None:
    assert is_accepted(ModelGuard("m", response_filter, "accept"), response) is accepted


def test_a_pattern_for_json_text_with_its_quotes_is_understood() -> None:
    assert is_accepted(ModelGuard("m", None, r'\s*"[Aa]ccept"\s*'), "accept")


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"type": "x"}, "guardrails.type must be local_regex or model"),
        ({"input_guardrail": []}, "guardrails.input_guardrail must be an object"),
        ({"input_guardrail": {"regex": "x"}}, "guardrails.input_guardrail.regex must be an array of strings"),
        ({"output_guardrail": {"regex": ["("]}}, "The regular expression"),
        ({"input_guardrail": {"stop_words": {"a": 1}}}, "guardrails.input_guardrail.stop_words must be an array"),
        ({"input_guardrail": {"stop_words": ["bad"]}}, "guardrails.input_guardrail.stop_words must be an array"),
        ({"input_guardrail": {"stop_words": [{}]}}, "guardrails.input_guardrail.stop_words needs an index_name"),
        ({"type": "model", "input_guardrail": {"model_id": "m"}}, "input_guardrail.response_validation_regex must be"),
    ],
)
def test_wrong_guardrails_are_refused_with_the_field(document: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_guardrails(document)
    assert reason in caught.value.reason


def test_the_patterns_of_a_guard_are_bounded_together() -> None:
    patterns = [rf".*\pL{{20}}{n}.*" for n in range(50)]
    with pytest.raises(InvalidRequest, match=r"of guardrails.input_guardrail have more than 1000000 instructions"):
        read_guardrails({"type": "local_regex", "input_guardrail": {"regex": patterns}})
