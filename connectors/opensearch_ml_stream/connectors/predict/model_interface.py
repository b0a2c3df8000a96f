"""A model's `interface`: validate predict inputs and responses by its JSON Schemas (draft 2020-12).

Errors give the JSON path and the rule that was broken, never a value, which may be a prompt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.json_schema.compiler import BadSchema, JSONSchema, UnknownReference
from opensearch_ml_stream.connectors.json_schema.evaluation import Evaluation, TooComplex, Violation
from opensearch_ml_stream.connectors.predict.inputs import (
    PredictInput,
    QuestionAnsweringInput,
    RemoteInput,
    TextDocsInput,
    TextSimilarityInput,
)
from opensearch_ml_stream.connectors.syntax import jsontext

MAX_SCHEMA_CHARS = 100_000  # schemas come from callers and are kept compiled
MAX_RULE_CHARS = 500  # of a rule's value in an error


@dataclass(frozen=True, slots=True)
class InterfaceSchema:
    """A compiled schema of one side, "input" or "output".

    `strings` are the parameters that the schema says are strings (`properties.parameters.properties.<name>.type`).
    """

    side: str
    schema: JSONSchema
    strings: frozenset[str]

    @classmethod
    def compile(cls, text: str, side: str) -> "InterfaceSchema":
        """Compile the JSON text of a schema. InvalidRequest says what is wrong with it."""
        name = f"The model's interface.{side}"
        if len(text) > MAX_SCHEMA_CHARS:
            raise InvalidRequest(f"{name} may have {MAX_SCHEMA_CHARS} characters; it has {len(text)}")
        try:
            value = jsontext.parse(text, name)
            return cls(side, JSONSchema.compile(value), _string_parameters(value))
        except BadSchema as error:
            raise InvalidRequest(f"{name} is not a JSON Schema: {error}") from None
        except UnknownReference as error:
            raise InvalidRequest(f"{name} refers to a schema that is not in it: {error}") from None

    def validate(self, value: Any, run: Evaluation | None = None) -> None:
        """Raise InvalidRequest if the value does not match the schema, or if that takes too long to find out."""
        try:
            violations = self.schema.violations(value, run)
        except TooComplex as error:
            raise InvalidRequest(f"The model's interface.{self.side} cannot be used: {error}") from None
        if violations:
            raise InvalidRequest(
                f"Error validating {self.side} schema, if you think this is expected, please update your "
                f"'{self.side}' field in the 'interface' field for this model: "
                f"Validation failed: [{', '.join(map(_describe, violations))}]",
                type="status_exception",
            )

    def validate_input(self, predict_input: PredictInput, parameters: Sequence[Mapping[str, str]]) -> None:
        """Raise InvalidRequest if the input does not match the schema with each of these parameters.

        All together take the time of one.
        """
        run = Evaluation()
        instance = input_instance(predict_input)
        for values in parameters:
            if "parameters" in instance or values:
                instance["parameters"] = _parameter_values(values, self.strings)
            self.validate(instance, run)


def input_instance(predict_input: PredictInput) -> dict[str, Any]:
    """Return the JSON value that an input schema describes: `{"algorithm", "action_type", ...}`, without parameters."""
    instance: dict[str, Any] = {"algorithm": _algorithm(predict_input)}
    if isinstance(predict_input, TextDocsInput | TextSimilarityInput):
        instance["text_docs"] = list(predict_input.text_docs)
    if isinstance(predict_input, TextSimilarityInput):
        instance["query_text"] = predict_input.query_text
    if isinstance(predict_input, QuestionAnsweringInput):
        instance.update(question=predict_input.question, context=predict_input.context)
    if isinstance(predict_input, RemoteInput):
        instance["parameters"] = {}
    instance["action_type"] = "PREDICT"
    return instance


def _parameter_values(parameters: Mapping[str, str], strings: frozenset[str]) -> dict[str, Any]:
    """Return parameters as JSON values: text that is JSON as what it says, unless the schema says it is a string."""
    return {name: str(text) if name in strings else jsontext.value_or_text(text) for name, text in parameters.items()}


def _algorithm(predict_input: PredictInput) -> str:
    if isinstance(predict_input, TextDocsInput):
        return "TEXT_EMBEDDING"
    if isinstance(predict_input, TextSimilarityInput):
        return "TEXT_SIMILARITY"
    return "QUESTION_ANSWERING" if isinstance(predict_input, QuestionAnsweringInput) else "REMOTE"


def _string_parameters(schema: Any) -> frozenset[str]:
    for key in ("properties", "parameters", "properties"):
        schema = schema.get(key) if isinstance(schema, dict) else None
    if not isinstance(schema, dict):
        return frozenset()
    return frozenset(name for name, rule in schema.items() if isinstance(rule, dict) and rule.get("type") == "string")


def _describe(violation: Violation) -> str:
    path, keyword, rule = violation
    if keyword == "required":
        missing = ", ".join(f"'{name}'" for name in rule)
        return f"{path}: required property {missing} not found"
    if keyword == "type":
        return f"{path}: must be of type {' or '.join(rule) if isinstance(rule, list) else rule}"
    if keyword in _RULES_WITH_VALUE:
        text = jsontext.dumps(rule)
        return f"{path}: breaks the rule {keyword} {text[:MAX_RULE_CHARS]}{'...' if len(text) > MAX_RULE_CHARS else ''}"
    return f"{path}: breaks the rule {keyword}"


_RULES_WITH_VALUE = (
    "const", "enum", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "uniqueItems",
)  # fmt: skip
