"""A model's `interface`: validate predict inputs and responses by its JSON Schemas (draft 2020-12).

Errors give the JSON path and the rule that was broken, never a value, which may be a prompt. Patterns run on RE2, and a
`$ref` resolves only within the schema itself: nothing is fetched.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from referencing.exceptions import Unresolvable
from referencing.jsonschema import EMPTY_REGISTRY

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.inputs import (
    PredictInput,
    QuestionAnsweringInput,
    RemoteInput,
    TextDocsInput,
    TextSimilarityInput,
)
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText
from opensearch_ml_stream.connectors.syntax.regex import compile_regex

_MAX_ERRORS = 10


def validate_input(schema: str, predict_input: PredictInput, action_type: str = "PREDICT") -> None:
    """Raise InvalidRequest if the input does not match the schema, or the text is not a JSON Schema."""
    check_schema(schema, "input")
    _validate(schema, input_instance(schema, predict_input, action_type), "input")


def validate_output(schema: str, response: Mapping[str, Any]) -> None:
    """Raise InvalidRequest if a whole predict response, `{"inference_results": [...]}`, does not match the schema."""
    _validate(schema, response, "output")


def check_schema(schema: str, side: str) -> None:
    """Raise InvalidRequest if the text is not a JSON Schema. `side` is "input" or "output"."""
    _compile(schema, side)


def input_instance(schema: str, predict_input: PredictInput, action_type: str = "PREDICT") -> dict[str, Any]:
    """Return the JSON value that an input schema describes: `{"algorithm", "parameters", "action_type", ...}`.

    A parameter that is JSON text counts as the JSON value, unless the schema says that it is a string.
    """
    instance: dict[str, Any] = {"algorithm": _algorithm(predict_input)}
    if isinstance(predict_input, TextDocsInput | TextSimilarityInput):
        instance["text_docs"] = list(predict_input.text_docs)
    if isinstance(predict_input, TextSimilarityInput):
        instance["query_text"] = predict_input.query_text
    if isinstance(predict_input, QuestionAnsweringInput):
        instance.update(question=predict_input.question, context=predict_input.context)
    if isinstance(predict_input, RemoteInput) or predict_input.parameters:
        strings = _string_parameters(schema)
        instance["parameters"] = {
            name: str(text) if name in strings else _value(text) for name, text in predict_input.parameters.items()
        }
    instance["action_type"] = action_type
    return instance


def _algorithm(predict_input: PredictInput) -> str:
    if isinstance(predict_input, TextDocsInput):
        return "TEXT_EMBEDDING"
    if isinstance(predict_input, TextSimilarityInput):
        return "TEXT_SIMILARITY"
    return "QUESTION_ANSWERING" if isinstance(predict_input, QuestionAnsweringInput) else "REMOTE"


@lru_cache(maxsize=256)
def _string_parameters(text: str) -> frozenset[str]:
    """Return the names whose `properties.parameters.properties.<name>.type` in the schema is "string"."""
    schema: Any = json.loads(text)
    for key in ("properties", "parameters", "properties"):
        schema = schema.get(key) if isinstance(schema, dict) else None
    if not isinstance(schema, dict):
        return frozenset()
    return frozenset(name for name, rule in schema.items() if isinstance(rule, dict) and rule.get("type") == "string")


def _value(text: str) -> Any:
    if isinstance(text, JsonText) or jsontext.is_json(text):
        return json.loads(text)
    return text


def _validate(schema: str, instance: Any, side: str) -> None:
    validator = _compile(schema, side)
    try:
        errors = [
            _describe(error) for error, _ in zip(validator.iter_errors(instance), range(_MAX_ERRORS), strict=False)
        ]
    except Unresolvable as error:
        raise InvalidRequest(
            f"The model's interface.{side} refers to a schema that is not in it: {error.ref}"
        ) from None
    if errors:
        raise InvalidRequest(
            f"Error validating {side} schema, if you think this is expected, please update your '{side}' field in "
            f"the 'interface' field for this model: Validation failed: [{', '.join(errors)}]",
            type="status_exception",
        )


@lru_cache(maxsize=256)
def _compile(schema: str, side: str) -> Any:
    try:
        value = json.loads(schema)
        _RE2Validator.check_schema(value)
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"The model's interface.{side} is not JSON: {error.msg} at line {error.lineno}") from None
    except SchemaError as error:
        raise InvalidRequest(
            f"The model's interface.{side} is not a JSON Schema: {error.message} at {error.json_path}"
        ) from None
    return _RE2Validator(value, registry=EMPTY_REGISTRY)


def _describe(error: ValidationError) -> str:
    """Return the JSON path and the rule of an error. The library's own messages repeat the value."""
    path = error.json_path
    rule: Any = error.validator_value
    if error.validator == "required" and isinstance(error.instance, Mapping):
        missing = ", ".join(f"'{name}'" for name in rule if name not in error.instance)
        return f"{path}: required property {missing} not found"
    if error.validator == "type":
        return f"{path}: must be of type {' or '.join(rule) if isinstance(rule, list) else rule}"
    if error.validator in _RULES_WITH_VALUE:
        return f"{path}: breaks the rule {error.validator} {jsontext.dumps(rule)}"
    return f"{path}: breaks the rule {error.validator}"


_RULES_WITH_VALUE = (
    "const", "enum", "format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "uniqueItems",
)  # fmt: skip


def _pattern(validator: Validator, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and compile_regex(pattern).search(instance) is None:
        yield ValidationError("pattern")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for pattern, subschema in patterns.items():
        for name in _matching(pattern, list(instance)):
            yield from validator.descend(instance[name], subschema, path=name, schema_path=pattern)


def _matching(pattern: str, names: Sequence[str]) -> list[str]:
    regex = compile_regex(pattern)
    return [name for name in names if regex.search(name) is not None]


_RE2Validator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, validators={"pattern": _pattern, "patternProperties": _pattern_properties}
)
