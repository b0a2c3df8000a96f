"""JSON Schemas for what goes in and out of a model."""

import json
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.inputs import (
    PredictInput,
    QuestionAnsweringInput,
    RemoteInput,
    TextDocsInput,
    TextSimilarityInput,
)
from opensearch_ml_stream.connectors.predict.model_interface import InterfaceSchema, input_instance
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText


def validate_input(schema: str, given: PredictInput) -> None:
    InterfaceSchema.compile(schema, "input").validate_input(given, [given.parameters])


def _parameters(**rules: Any) -> str:
    properties = {"properties": {"parameters": {"type": "object", **rules}}}
    return json.dumps({"type": "object", **properties})


def _refusal(schema: str, given: PredictInput) -> str:
    with pytest.raises(InvalidRequest) as caught:
        validate_input(schema, given)
    assert (caught.value.status, caught.value.type) == (400, "status_exception")
    return caught.value.reason


def test_a_missing_parameter_is_refused_in_the_words_of_ml_commons() -> None:
    assert _refusal(_parameters(required=["zzz"]), RemoteInput({"messages": JsonText("[]")})) == (
        "Error validating input schema, if you think this is expected, please update your 'input' field in the "
        "'interface' field for this model: Validation failed: [$.parameters: required property 'zzz' not found]"
    )


def test_an_input_that_keeps_the_rules_passes() -> None:
    schema = _parameters(required=["a"], properties={"a": {"type": "array", "items": {"type": "integer"}}})
    validate_input(schema, RemoteInput({"a": JsonText("[1, 2]")}))
    validate_input(schema, RemoteInput({"a": "[1, 2]"}))


def test_text_that_looks_like_json_is_a_string_where_the_schema_says_string() -> None:
    schema = _parameters(properties={"s": {"type": "string"}, "n": {"type": "number"}})
    given = RemoteInput({"s": JsonText("7"), "n": "7", "other": "text"})
    validate_input(schema, given)
    whole = {"algorithm": "REMOTE", "parameters": {"s": "7", "n": 7, "other": "text"}, "action_type": "PREDICT"}
    schema = json.dumps({**json.loads(schema), "const": whole})
    validate_input(schema, given)
    assert "const" in _refusal(schema, RemoteInput({**given.parameters, "n": "8"}))


def test_texts_stand_in_the_instance_by_name() -> None:
    assert input_instance(TextDocsInput(("a",))) == {
        "algorithm": "TEXT_EMBEDDING",
        "text_docs": ["a"],
        "action_type": "PREDICT",
    }
    assert input_instance(TextSimilarityInput("q", ("a",)))["query_text"] == "q"
    assert input_instance(QuestionAnsweringInput("q", "c")) == {
        "algorithm": "QUESTION_ANSWERING",
        "question": "q",
        "context": "c",
        "action_type": "PREDICT",
    }


@pytest.mark.parametrize("rule", [{"pattern": "^a"}, {"patternProperties": {"^a": {"type": "null"}}}])
@pytest.mark.parametrize("value", [JsonText("7"), JsonText("[1]"), JsonText("null")])
def test_a_rule_about_strings_or_names_says_nothing_about_other_values(rule: object, value: str) -> None:
    validate_input(_parameters(properties={"p": rule}), RemoteInput({"p": value}))


@pytest.mark.parametrize(
    ("rule", "value", "reason"),
    [
        ({"type": "integer"}, "my secret diary", "$.parameters.p: must be of type integer"),
        ({"type": ["integer", "null"]}, "my secret diary", "$.parameters.p: must be of type integer or null"),
        ({"maxLength": 3}, "my secret diary", "$.parameters.p: breaks the rule maxLength 3"),
        ({"enum": ["a"]}, "my secret diary", '$.parameters.p: breaks the rule enum ["a"]'),
        ({"pattern": "^a"}, "my secret diary", '$.parameters.p: breaks the rule pattern "^a"'),
        ({"not": {}}, "my secret diary", "$.parameters.p: breaks the rule not"),
        ({"items": {"maxLength": 3}}, JsonText('["a", "my secret diary"]'), "$.parameters.p[1]: breaks the rule maxL"),
        ({"patternProperties": {"^x": {"type": "null"}}}, JsonText('{"x1": "diary"}'), "$.parameters.p.x1: must be of"),
    ],
)
def test_an_error_gives_the_place_and_the_rule_but_never_the_value(rule: object, value: str, reason: str) -> None:
    refusal = _refusal(_parameters(properties={"p": rule}), RemoteInput({"p": value}))
    assert reason in refusal
    assert "diary" not in refusal


def test_an_output_is_checked_as_a_whole() -> None:
    schema = json.dumps({"type": "object", "properties": {"inference_results": {"type": "array", "minItems": 1}}})
    output = InterfaceSchema.compile(schema, "output")
    output.validate({"inference_results": [{}]})
    with pytest.raises(InvalidRequest, match=r"Error validating output schema.*update your 'output' field.*minItems 1"):
        output.validate({"inference_results": []})


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{", "The model's interface.input is not JSON: "),
        ('{"type": 5}', "The model's interface.input is not a JSON Schema: "),
        ('"x"', "The model's interface.input is not a JSON Schema: "),
    ],
)
def test_a_string_that_is_no_schema_is_refused(schema: str, reason: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        InterfaceSchema.compile(schema, "input")
    assert caught.value.reason.startswith(reason)


def test_a_schema_is_never_fetched_from_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[object] = []
    monkeypatch.setattr("urllib.request.urlopen", fetched.append)
    reason = "refers to a schema that is not in it: http://127.0.0.1:1/schema"
    with pytest.raises(InvalidRequest, match=reason):
        validate_input('{"$ref": "http://127.0.0.1:1/schema"}', RemoteInput({}))
    assert fetched == []


def test_references_inside_a_schema_are_followed() -> None:
    schema = '{"$defs": {"p": {"required": ["q"]}}, "properties": {"parameters": {"$ref": "#/$defs/p"}}}'
    assert "required property 'q' not found" in _refusal(schema, RemoteInput({}))


def test_a_pattern_that_would_take_years_elsewhere_is_decided() -> None:
    schema = _parameters(properties={"p": {"pattern": "^(a+)+$"}})
    assert "pattern" in _refusal(schema, RemoteInput({"p": "a" * 40 + "!"}))
