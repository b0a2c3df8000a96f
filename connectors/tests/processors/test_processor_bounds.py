"""What processors cost and give is bounded, and what they meet never fails but with an error that says why."""

import json
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.connectors.processors.chain import (
    MAX_CONFIG_DEPTH,
    MAX_CONFIG_VALUES,
    MAX_PATHS_CHARS,
    compile_processors,
)
from opensearch_ml_stream.connectors.syntax.work_limit import STEPS_FOR_EACH_MEBIBYTE

_TOO_MUCH = f"output_processors takes more than {STEPS_FOR_EACH_MEBIBYTE} steps of work"


def _run(value: Any, *configs: dict[str, Any], characters: int = 0) -> Any:
    return compile_processors(json.dumps(configs), "output_processors").run(value, characters)


_DOUBLE: dict[str, Any] = {"type": "regex_replace", "pattern": "a", "replacement": "aa"}
_DEFAULT: dict[str, Any] = {"type": "jsonpath_filter", "path": "$.x", "default": ["a" * 2000]}
_NESTED: Any = json.loads("[" * 60 + "1" + "]" * 60)


@pytest.mark.parametrize(
    ("value", "configs"),
    [
        ("a", [_DOUBLE] * 25),
        ('"', [{"type": "to_string", "escape_json": True}] * 50),
        ("a" * 50_000, [{"type": "regex_replace", "pattern": "(a+)", "replacement": "$1" * 500}]),
        ("a" * 50_000, [{"type": "regex_capture", "pattern": "(a+)", "groups": [1] * 500}]),
        ("a" * 200_000, [{"type": "regex_replace", "pattern": "a.*b|a"}]),
        ({"l": [1] * 100}, [{"type": "set_field", "path": "$.l[*]", "source_path": "$.l"}] * 5),
        ({"l": [1] * 20_000}, [{"type": "for_each", "path": "$.l", "processors": [_DEFAULT]}]),
        (_NESTED, [{"type": "jsonpath_filter", "path": "$..*..*..*..*..*"}]),
        (_NESTED, [{"type": "remove_jsonpath", "path": "$..*..*..*..*..*"}]),
        (_NESTED, [{"type": "for_each", "path": "$..*..*..*..*", "processors": [{"type": "to_string"}]}]),
        (_NESTED, [{"type": "conditional", "path": "$..*..*..*..*..*", "routes": [{"exists": []}]}]),
        ({"text": "a" * 100_000}, [{"type": "remove_jsonpath", "path": "$.b"}, {"type": "to_string"}] * 100),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_more_work_or_output_than_the_input_allows_is_refused(value: Any, configs: list[dict[str, Any]]) -> None:
    with pytest.raises(InvalidRequest, match=_TOO_MUCH):
        _run(value, *configs)


def test_the_error_is_the_providers_where_the_value_comes_from_it() -> None:
    chain = compile_processors(json.dumps([_DOUBLE] * 25), "output_processors")
    with pytest.raises(UpstreamError, match=_TOO_MUCH) as caught:
        chain.run("a", 1, UpstreamError)
    assert caught.value.status == 424


def test_a_larger_input_allows_more_work() -> None:
    assert len(_run("a", *[_DOUBLE] * 15, characters=20 << 20)) == 2**15


def test_one_edit_after_the_other_costs_no_copy_of_the_document_each() -> None:
    edits: list[dict[str, Any]] = [
        {"type": "set_field", "path": f"$.x{number}", "value": [number]} for number in range(100)
    ]
    edited = _run({"text": "word, " * 50_000}, *edits, {"type": "remove_jsonpath", "path": "$.text"})
    assert edited == {f"x{number}": [number] for number in range(100)}


def test_the_configuration_stays_as_it_is_when_what_it_put_into_a_document_is_edited() -> None:
    default: dict[str, Any] = {"type": "jsonpath_filter", "path": "$.gone", "default": {"a": []}}
    put: list[dict[str, Any]] = [
        {"type": "set_field", "path": "$.new", "value": {"b": 1}},
        {"type": "set_field", "path": "$.new.b", "value": 2},
        {"type": "process_and_set", "path": "$.c", "processors": [default]},
        {"type": "set_field", "path": "$.c.a", "value": 3},
        {"type": "for_each", "path": "$.l", "processors": [default]},
        {"type": "set_field", "path": "$.l[0].a", "value": 4},
    ]
    chain = compile_processors(json.dumps(put), "output_processors")
    for _ in range(2):
        assert chain.run({"l": [0, 0]}, 0) == {"l": [{"a": 4}, {"a": []}], "new": {"b": 2}, "c": {"a": 3}}


def test_a_value_that_is_set_is_a_copy_and_never_holds_itself() -> None:
    assert _run({"a": 1}, {"type": "set_field", "path": "$.*", "source_path": "$"}) == {"a": {"a": 1}}
    twice: list[dict[str, Any]] = [
        {"type": "set_field", "path": "$.b", "source_path": "$.a"},
        {"type": "set_field", "path": "$.b.x", "value": 2},
    ]
    assert _run({"a": {"x": 1}}, *twice) == {"a": {"x": 1}, "b": {"x": 2}}


def test_nodes_inside_each_other_are_replaced_and_removed_from_the_outside() -> None:
    assert _run({"a": {"a": {"a": 1}}}, {"type": "set_field", "path": "$..a", "value": 2}) == {"a": 2}
    assert _run({"a": {"a": 1}}, {"type": "remove_jsonpath", "path": "$..a"}) == {}
    assert _run([1, 2, 3], {"type": "remove_jsonpath", "path": "$[0,0]"}) == [2, 3]
    assert _run({}, {"type": "set_field", "path": "$..a", "value": 2}) == {}


@pytest.mark.parametrize(
    "text", ["[" * 5000, "so: [1" + "0" * 5000 + "]", '{"a":' * 5000], ids=["deep", "digits", "objects"]
)
def test_extract_json_leaves_text_that_begins_like_json_but_cannot_be_read(text: str) -> None:
    assert _run(text, {"type": "extract_json"}) == text
    assert _run(text, {"type": "extract_json", "default": 1}) == 1


@pytest.mark.parametrize("text", ["[" * 40_000 + "]" * 40_000, "[1" + "0" * 5000 + "]"], ids=["deep", "digits"])
def test_a_document_that_is_too_deep_or_has_huge_numbers_is_refused(text: str) -> None:
    for config in ({"type": "jsonpath_filter", "path": "$"}, {"type": "set_field", "path": "$", "value": 1}):
        with pytest.raises(
            InvalidRequest, match="output_processors meet JSON that is nested too deeply, or has a number"
        ):
            _run(text, config)


def test_a_value_that_is_too_deep_to_be_written_is_refused() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InvalidRequest, match="output_processors meet JSON that is nested too deeply"):
        _run(value, {"type": "to_string"})
    while isinstance(value, list):  # Python would free it recursively
        value = value.pop()


def test_a_string_that_opens_like_json_but_is_none_is_left_as_it_is() -> None:
    assert _run('"["', {"type": "remove_jsonpath", "path": "$"}) == "["
    assert _run("null", {"type": "jsonpath_filter", "path": "$"}) is None


def _nest(depth: int) -> str:
    opening = '[{"type":"for_each","path":"$.a","processors":'
    return opening * depth + '[{"type":"to_string"}]' + "}]" * depth


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (_nest(300), f"output_processors may be nested {MAX_CONFIG_DEPTH} deep"),
        ("[" * 40_000, f"output_processors may be nested {MAX_CONFIG_DEPTH} deep"),
        ("[1" + "0" * 5000 + "]", "output_processors has a number of thousands of digits"),
        ('[{"type":"regex_capture","pattern":"a","groups":"1' + "0" * 5000 + '"}]', r"\[0\]\.groups must be a number"),
        ('[{"type":"regex_capture","pattern":"a","groups":[1' + "0" * 400 + "]}]", r"\[0\]\.groups must be a number"),
        (json.dumps([{"type": "to_string"}] * 1000), f"output_processors may have {MAX_CONFIG_VALUES} values"),
        (
            json.dumps([{"type": "remove_jsonpath", "paths": ["$." + "a" * 500] * 11}]),
            f"The JSONPaths of output_processors may have {MAX_PATHS_CHARS} characters together",
        ),
    ],
    ids=["nested", "brackets", "digits", "groups", "group", "many", "paths"],
)
def test_a_configuration_that_is_too_large_or_too_deep_is_refused_with_the_limit(config: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        compile_processors(config, "output_processors")


def test_processors_nest_as_deep_as_is_allowed() -> None:
    compile_processors(_nest(MAX_CONFIG_DEPTH // 2 - 2), "output_processors")


_LETTERS = r"\pL{9}"


@pytest.mark.parametrize(
    "configs",
    [
        [{"type": "regex_replace", "pattern": f"{_LETTERS}{n}"} for n in range(20)],
        [{"type": "regex_capture", "pattern": f"{_LETTERS}{n}"} for n in range(20)],
        [{"type": "conditional", "routes": [{f"regex:{_LETTERS}{n}": []} for n in range(20)]}],
        [{"type": "conditional", "routes": [{"exists": [{"type": "regex_replace", "pattern": f"{_LETTERS}{n}"}]}]}
         for n in range(20)],
    ],
    ids=["replace", "capture", "conditions", "within each other"],
)  # fmt: skip
def test_processors_have_no_more_patterns_than_can_be_compiled_at_once(configs: list[dict[str, Any]]) -> None:
    with pytest.raises(InvalidRequest, match="The regular expressions of output_processors have more than 100000 inst"):
        _run("a", *configs)


def test_jsonpaths_of_processors_have_ten_patterns_together() -> None:
    path = "$[?(@.a =~ /b/)]"
    with pytest.raises(InvalidRequest, match="may have 10 regular expressions together"):
        _run("a", *[{"type": "jsonpath_filter", "path": path}] * 11)


def test_a_value_that_looks_like_a_pattern_is_none() -> None:
    value = {"pattern": "(", "routes": [1], "regex:(": 1}
    assert _run({}, {"type": "set_field", "path": "$.a", "value": value}) == {"a": value}
