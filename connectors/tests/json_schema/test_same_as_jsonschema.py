"""Our validator decides as the library jsonschema does, which follows the specification but bounds nothing."""

from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from opensearch_ml_stream.connectors.json_schema.compiler import BadSchema, JSONSchema

_TYPES = ("null", "boolean", "object", "array", "string", "number", "integer")
_NAMES = "abcxy"
_SCALARS = (None, True, False, 0, 1, 1.0, 2, 3.5, -1, "", "a", "ab", "b1", "foo", 10)
_REFERENCES = ("#/$defs/a", "#n", "#/$defs/b%25~1/x", "urn:c", "urn:c#/$defs/a", "urn:c#n")
_SIMPLE: tuple[Any, ...] = (
    True,
    False,
    {},
    {"type": "string"},
    {"type": "integer"},
    {"const": 1},
    {"$ref": "#/$defs/a"},
)
_ONE = ("not", "if", "then", "else", "additionalProperties", "propertyNames", "items", "contains",
        "unevaluatedProperties", "unevaluatedItems")  # fmt: skip
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("dependentSchemas", "properties")
_COUNTS = ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties", "minContains",
           "maxContains")  # fmt: skip
_LIMITS = ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum")
_OTHERS = ("type", "const", "enum", "multipleOf", "uniqueItems", "pattern", "patternProperties", "required",
           "dependentRequired", "$ref", "$dynamicRef")  # fmt: skip


def _value(chance: Random, depth: int) -> Any:
    kind = chance.random()
    if depth == 0 or kind < 0.5:
        return chance.choice(_SCALARS)
    if kind < 0.75:
        return [_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {chance.choice(_NAMES): _value(chance, depth - 1) for _ in range(chance.randrange(4))}


def _schema(chance: Random, depth: int) -> Any:
    if depth == 0 or chance.random() < 0.1:
        return chance.choice(_SIMPLE)
    keywords = chance.choices(_ONE + _MANY + _NAMED + _COUNTS + _LIMITS + _OTHERS, k=chance.randrange(1, 4))
    return {keyword: _rule(keyword, chance, depth - 1) for keyword in keywords}


def _rule(keyword: str, chance: Random, depth: int) -> Any:
    if keyword in _ONE:
        return _schema(chance, depth)
    if keyword in _MANY:
        return [_schema(chance, depth) for _ in range(chance.randrange(1, 3))]
    if keyword in _NAMED:
        return {chance.choice(_NAMES): _schema(chance, depth) for _ in range(chance.randrange(3))}
    if keyword in _COUNTS:
        return chance.randrange(4)
    if keyword in _LIMITS:
        return chance.choice((0, 1, 2, 1.5))
    return {
        "type": chance.choice((chance.choice(_TYPES), chance.sample(_TYPES, 2))),
        "const": _value(chance, 2),
        "enum": [_value(chance, 1) for _ in range(3)],
        "multipleOf": chance.choice((1, 2, 0.5, 1.5)),
        "uniqueItems": chance.choice((True, False)),
        "pattern": chance.choice(("^a", "b", "[0-9]$")),
        "patternProperties": {chance.choice(("^a", "x|y", ".")): _schema(chance, depth)},
        "required": chance.sample(_NAMES, chance.randrange(3)),
        "dependentRequired": {chance.choice(_NAMES): [chance.choice(_NAMES)]},
        "$ref": chance.choice(_REFERENCES),
        "$dynamicRef": "#/$defs/a",
    }[keyword]


def _definitions(chance: Random) -> dict[str, Any]:
    inner = {"$id": "urn:c", "minimum": 1, "$defs": {"a": _schema(chance, 1), "n": {"$anchor": "n", "type": "array"}}}
    anchored = {"$anchor": "n", "type": chance.choice(_TYPES)}
    return {"a": _schema(chance, 1), "n": anchored, "b%/": {"x": {"minimum": 1}}, "c": inner}


@pytest.mark.parametrize("seed", range(8))
def test_values_are_good_for_both_or_for_neither(seed: int) -> None:
    chance = Random(seed)
    decided = {True: 0, False: 0}
    for _ in range(120):
        schema = {"allOf": [_schema(chance, 3)], "$defs": _definitions(chance)}
        try:
            compiled = JSONSchema.compile(schema)
        except BadSchema as error:
            assert "leads back to itself" in str(error)
            continue
        for _ in range(5):
            value = _value(chance, 3)
            good = Draft202012Validator(schema).is_valid(value)
            assert (compiled.violations(value) == []) is good, (schema, value)
            decided[good] += 1
    assert min(decided.values()) > 100


@pytest.mark.parametrize(
    "schema",
    [
        5, None, [], {"type": "text"}, {"type": []}, {"properties": []}, {"properties": {"a": 5}}, {"items": [{}]},
        {"allOf": {}}, {"allOf": []}, {"required": "a"}, {"required": [1]}, {"minLength": -1}, {"minLength": 1.5},
        {"minItems": True}, {"maximum": "1"}, {"multipleOf": 0}, {"enum": 1}, {"pattern": 1}, {"pattern": "("},
        {"patternProperties": {"(": {}}}, {"uniqueItems": 1}, {"dependentRequired": {"a": "b"}}, {"$ref": 1},
        {"contains": {}, "minContains": "1"}, {"not": 1}, {"if": 1}, {"unevaluatedItems": 1},
    ],
)  # fmt: skip
def test_what_is_no_schema_is_refused(schema: object) -> None:
    with pytest.raises(BadSchema):
        JSONSchema.compile(schema)
