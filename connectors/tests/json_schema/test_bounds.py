"""No schema and no value take long, run out of stack, or are looked up elsewhere.

Work is bounded by a budget of steps: `TooComplex` says that it is spent. What is not counted shows in
`slow_inputs/test_json_inputs.py`, and a pattern that backtracks never ends.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.json_schema.compiler import MAX_SUBSCHEMAS, BadSchema, JSONSchema, UnknownReference
from opensearch_ml_stream.connectors.json_schema.evaluation import MAX_DEPTH, MAX_VIOLATIONS, TooComplex, Violation
from tests.counted_work import steps


def _nested(name: str, levels: int, inner: Any) -> Any:
    for _ in range(levels):
        inner = {name: inner}
    return inner


def _doubled(levels: int, last: Any) -> dict[str, Any]:
    twice = {f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**twice, f"d{levels}": last}}


_SAME_TWICE = {"properties": {"a": {"$ref": "#"}}}
_TOO_COMPLEX: Mapping[str, tuple[Any, Any]] = {
    "references doubled 2^18 times": (_doubled(18, {"type": "object"}), {}),
    "a value that doubles at each level": ({"allOf": [_SAME_TWICE, _SAME_TWICE]}, _nested("a", 40, 1)),
    "unevaluated members at each level": (
        {"properties": {"a": {"$ref": "#"}}, "anyOf": [_SAME_TWICE] * 3, "unevaluatedProperties": False},
        _nested("a", 40, 1),
    ),
    "a value nested 900 deep": ({"properties": {"a": {"$ref": "#"}}}, _nested("a", 900, 1)),
    "a schema nested 900 deep": (_nested("not", 900, {}), 1),
    "many options for many elements": ({"items": {"oneOf": [{"const": n} for n in range(300)]}}, [1] * 10_000),
    "long arrays compared with long arrays": ({"items": {"enum": [[1] * 100]}}, [[1] * 100] * 5_000),
    "an array compared 900 deep": ({"uniqueItems": True}, [_nested("a", 900, 1)]),
    "many patterns on a long text": (
        {"allOf": [{"not": {"pattern": f"a.*b.*c{n}"}} for n in range(500)]}, "ab" * 500_000,
    ),
    "a large pattern on many texts": ({"items": {"pattern": "((.*|(a))|(a)){1,90}" * 14}}, ["%" * 300] * 30),
    "a pattern of many states on many texts": ({"items": {"pattern": "(?:.*|a){1,90}" * 7}}, ["%" * 90] * 1_000),
    "many patterns for many names": (
        {"patternProperties": {f"a{n}": True for n in range(500)}}, {f"k{n}": 1 for n in range(2_000)},
    ),
    "many names required of many objects": (
        {"items": {"required": [f"k{n}" for n in range(2_000)]}}, [{f"k{n}": 1 for n in range(2_000)}] * 2_000,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", _TOO_COMPLEX)
def test_what_would_take_too_long_is_given_up(name: str) -> None:
    schema, value = _TOO_COMPLEX[name]
    compiled = JSONSchema.compile(schema)
    with pytest.raises(TooComplex, match=r"more than \d+ (steps|deep)"):
        compiled.violations(value)


def test_a_small_pattern_may_search_a_long_text() -> None:
    assert JSONSchema.compile({"pattern": "^[A-Za-z0-9+/=]+$"}).violations("Zm9v" * 2_000_000) == []


_DECIDED: Mapping[str, tuple[Any, Any, bool]] = {
    "3,000 objects that are unique": ({"uniqueItems": True}, [{"a": n, "b": [n]} for n in range(3_000)], True),
    "a number of 400 digits": ({"multipleOf": 0.5}, int("1" * 400), True),
    "a divisor of 400 digits": ({"multipleOf": int("1" * 400)}, 5, False),
    "a number of 500 digits": ({"multipleOf": 0.5}, int("1" * 500), False),
    "a number beyond all": ({"multipleOf": 0.5}, float("inf"), False),
    "a pattern that would take years elsewhere": ({"pattern": "^(a+)+$"}, "a" * 40 + "!", False),
    "a name like it": (
        {"additionalProperties": False, "patternProperties": {"^(a+)+$": True}},
        {"a" * 40 + "!": 1},
        False,
    ),
    "100 vectors": ({"items": {"type": "array", "items": {"type": "number"}}}, [[0.5] * 1536] * 100, True),
    "20,000 objects": (
        {"items": {"required": ["a"], "properties": {"a": {"type": "string"}}}},
        [{"a": "x"}] * 20_000,
        True,
    ),
    "0.3 in tenths": ({"multipleOf": 0.1}, 0.3, True),
}


@pytest.mark.parametrize("name", _DECIDED)
def test_what_is_large_is_decided(name: str) -> None:
    schema, value, good = _DECIDED[name]
    assert (JSONSchema.compile(schema).violations(value) == []) is good


def test_whether_objects_are_unique_takes_steps_linear_in_their_number() -> None:
    compiled = JSONSchema.compile({"uniqueItems": True})
    few, many = ([{"a": n, "b": [n]} for n in range(number)] for number in (200, 400))
    assert steps(lambda: compiled.violations(many)) < 2.2 * steps(lambda: compiled.violations(few))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$dynamicRef": "#x", "$dynamicAnchor": "x"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
        {"dependentSchemas": {"a": {"if": {"not": {"$ref": "#"}}}}},
    ],
)
def test_a_schema_that_leads_back_to_itself_is_refused(schema: object) -> None:
    with pytest.raises(BadSchema, match="leads back to itself"):
        JSONSchema.compile(schema)


def test_a_schema_may_lead_back_to_itself_by_way_of_a_member() -> None:
    tree = JSONSchema.compile(
        {"$ref": "#/$defs/t", "$defs": {"t": {"properties": {"next": {"$ref": "#/$defs/t"}, "v": {"type": "null"}}}}}
    )
    assert tree.violations(_nested("next", 30, {"v": None})) == []
    assert tree.violations(_nested("next", 2, {"v": 1})) == [Violation("$.next.next.v", "type", "null")]


@pytest.mark.parametrize(
    "reference", ["http://127.0.0.1:1/x", "other", "#nowhere", "#/nowhere", "#/allOf/7", "#/allOf/x"]
)
def test_a_reference_to_what_is_not_in_the_schema_is_refused(reference: str) -> None:
    with pytest.raises(UnknownReference, match=f"^{reference}$"):
        JSONSchema.compile({"allOf": [{"$ref": reference}]})


def test_what_only_looks_like_a_schema_gives_no_names() -> None:
    with pytest.raises(UnknownReference):
        JSONSchema.compile({"$ref": "#a", "const": {"$anchor": "a"}})


def test_a_reference_of_many_steps_is_followed() -> None:
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(2_000)}
    compiled = JSONSchema.compile({"$defs": {**chain, "d2000": {}}, "$ref": f"#/$defs/d{2_001 - MAX_DEPTH + 1}"})
    assert compiled.violations(1) == []
    with pytest.raises(TooComplex):
        JSONSchema.compile({"$defs": {**chain, "d2000": {}}, "$ref": "#/$defs/d0"}).violations(1)


def test_a_schema_of_too_many_parts_is_refused() -> None:
    with pytest.raises(BadSchema, match=f"more than {MAX_SUBSCHEMAS} subschemas"):
        JSONSchema.compile({"allOf": [{} for _ in range(MAX_SUBSCHEMAS)]})


def test_no_more_violations_are_listed_than_anyone_reads() -> None:
    schema = {"items": {"type": "null"}, "minItems": 100}
    assert len(JSONSchema.compile(schema).violations([1] * 99)) == MAX_VIOLATIONS


def test_violations_name_the_place_and_the_keyword() -> None:
    schema = {
        "additionalProperties": False,
        "properties": {"a": {"items": False}, "b": False, "c": {"oneOf": [{}, {}]}, "d": {"contains": {"const": 1}}},
        "propertyNames": {"maxLength": 1},
    }
    value = {"a": [1], "b": 2, "c": 3, "d": [], "long": 4}
    found = [(path, keyword) for path, keyword, _ in JSONSchema.compile(schema).violations(value)]
    assert found == [
        ("$.a[0]", "items"), ("$.b", "false"), ("$.c", "oneOf"), ("$.d", "contains"), ("$.long", "maxLength"),
        ("$.long", "additionalProperties"),
    ]  # fmt: skip


def test_a_schema_in_a_schema_may_not_change_the_rules() -> None:
    """The library jsonschema hands what an inner `$schema` names to a validator with Python's own patterns."""
    inner = {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^(a+)+$"}
    assert JSONSchema.compile({"items": inner}).violations(["a" * 40 + "!"]) != []


def test_bad_keywords_are_named_by_their_path() -> None:
    schema = json.loads('{"properties": {"p": {"anyOf": [{"type": "text"}]}}}')
    with pytest.raises(BadSchema, match=r"^\$\.properties\.p\.anyOf\[0\]\.type: must be one or several of null"):
        JSONSchema.compile(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {f"{n}": {"pattern": rf"\pL{{9}}{n}"} for n in range(20)}},
        {"patternProperties": {rf"\pL{{9}}{n}": True for n in range(20)}},
        {"allOf": [{"pattern": f"a{n}"} for n in range(2_000)]},
    ],
    ids=["large patterns", "large patterns of names", "many patterns"],
)
def test_a_schema_has_no_more_patterns_than_can_be_compiled_at_once(schema: dict[str, Any]) -> None:
    with pytest.raises(BadSchema, match="The regular expressions of the schema have more than 100000 instr"):
        JSONSchema.compile(schema)
