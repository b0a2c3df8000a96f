"""Chains of processors: what each does, and the errors of a wrong configuration."""

import json
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.processors.chain import compile_processors


def _run(value: Any, *configs: dict[str, Any]) -> Any:
    return compile_processors(json.dumps(configs), "output_processors").run(value, 0)


@pytest.mark.parametrize(
    ("config", "value", "expected"),
    [
        ({"type": "to_string"}, {"name": "é", "n": [1, 2]}, '{"name":"é","n":[1,2]}'),
        ({"type": "to_string"}, "text", "text"),
        ({"type": "to_string"}, True, "true"),
        ({"type": "to_string", "escape_json": True}, {"a": "b\n"}, '{\\"a\\":\\"b\\\\n\\"}'),
        ({"type": "regex_replace", "pattern": "ERROR", "replacement": "WARN"}, "ERROR ERROR", "WARN WARN"),
        ({"type": "regex_replace", "pattern": "o", "replacement": "0", "replace_all": False}, "foo", "f0o"),
        ({"type": "regex_replace", "pattern": "^.*?\n"}, "head\nbody\n", "body\n"),
        ({"type": "regex_replace", "pattern": "a.b"}, "xa\nby", "xy"),
        ({"type": "regex_replace", "pattern": "(\\d+)-(\\d+)", "replacement": "$2\\$$1"}, "1-2", "2$1"),
        ({"type": "regex_replace", "pattern": "1"}, {"a": 1}, '{"a":}'),
        ({"type": "regex_capture", "pattern": "<(.*)>"}, "a <b\nc> d", "b\nc"),
        ({"type": "regex_capture", "pattern": "(\\d),(\\w+)", "groups": "[1, 2]"}, "1,green", ["1", "green"]),
        ({"type": "regex_capture", "pattern": "(\\d),(\\w+)", "groups": [2]}, "1,green", "green"),
        ({"type": "regex_capture", "pattern": "\\d+", "groups": "0"}, "call 123", "123"),
        ({"type": "regex_capture", "pattern": "(\\d)", "groups": "[1, 7]"}, "a1", "1"),
        ({"type": "regex_capture", "pattern": "(\\d)"}, "none", "none"),
        ({"type": "regex_capture", "pattern": "(a)|(b)", "groups": "[1,2]"}, "b", [None, "b"]),
        ({"type": "jsonpath_filter", "path": "$.d[*].n"}, {"d": [{"n": 1}, {"n": 2}]}, [1, 2]),
        ({"type": "jsonpath_filter", "path": "$.d"}, '{"d": "text"}', "text"),
        ({"type": "jsonpath_filter", "path": "$.x", "default": []}, {"d": 1}, []),
        ({"type": "jsonpath_filter", "path": "$.x"}, {"d": 1}, {"d": 1}),
        ({"type": "jsonpath_filter", "path": "$.x"}, "no json", "no json"),
        ({"type": "extract_json"}, 'It is: {"a": [1]} - done', {"a": [1]}),
        ({"type": "extract_json"}, "so [1, {}] and {}", [1, {}]),
        ({"type": "extract_json", "extract_type": "object"}, 'so [1] and {"a": 1}', {"a": 1}),
        ({"type": "extract_json", "extract_type": "array"}, '{"a": [1]}', [1]),
        ({"type": "extract_json", "default": {}}, "none", {}),
        ({"type": "extract_json", "default": {}}, "{broken", {}),
        ({"type": "extract_json"}, "{broken", "{broken"),
        ({"type": "extract_json"}, {"a": 1}, {"a": 1}),
        ({"type": "remove_jsonpath", "path": "$.secret"}, {"secret": 1, "a": 2}, {"a": 2}),
        ({"type": "remove_jsonpath", "paths": ["$.l[*].x", "$.gone"]}, {"l": [{"x": 1, "y": 2}]}, {"l": [{"y": 2}]}),
        ({"type": "remove_jsonpath", "paths": ["$.l[0,2]"]}, {"l": [1, 2, 3]}, {"l": [2]}),
        ({"type": "remove_jsonpath", "path": "$..x"}, {"x": {"x": 1}, "y": {"x": 2}}, {"y": {}}),
        ({"type": "set_field", "path": "$.a.b", "value": [1]}, {"a": {"b": 0}}, {"a": {"b": [1]}}),
        ({"type": "set_field", "path": "$.a.new", "value": None}, {"a": {}}, {"a": {"new": None}}),
        (
            {"type": "set_field", "path": "$.new", "source_path": "$.a"},
            {"a": {"b": 1}},
            {"a": {"b": 1}, "new": {"b": 1}},
        ),
        ({"type": "set_field", "path": "$.new", "source_path": "$.x", "default": 7}, {"a": 1}, {"a": 1, "new": 7}),
        ({"type": "set_field", "path": "$.new", "source_path": "$.x"}, {"a": 1}, {"a": 1}),
        ({"type": "set_field", "path": "$.x.new", "value": 1}, {"a": 1}, {"a": 1}),
        ({"type": "set_field", "path": "$.l[3]", "value": 1}, {"l": []}, {"l": []}),
        ({"type": "set_field", "path": "$.l[*].t", "value": 1}, {"l": [{}, {"t": 0}]}, {"l": [{}, {"t": 1}]}),
        (
            {"type": "process_and_set", "path": "$.s", "processors": [{"type": "jsonpath_filter", "path": "$.a"}]},
            {"a": 1},
            {"a": 1, "s": 1},
        ),
        (
            {"type": "for_each", "path": "$.l[*]", "processors": [{"type": "set_field", "path": "$.t", "value": 1}]},
            {"l": [{"a": 1}, {}]},
            {"l": [{"a": 1, "t": 1}, {"t": 1}]},
        ),
        (
            {"type": "for_each", "path": "$.l", "processors": [{"type": "to_string"}]},
            {"l": [1, {"a": 2}]},
            {"l": ["1", '{"a":2}']},
        ),
        (
            {"type": "for_each", "path": "$.m[*].c[*]", "processors": [{"type": "to_string"}]},
            {"m": [{"c": [1, 2]}, {"c": [3]}]},
            {"m": [{"c": ["1", "2"]}, {"c": ["3"]}]},
        ),
        ({"type": "for_each", "path": "$.x[*]", "processors": [{"type": "to_string"}]}, {"a": 1}, {"a": 1}),
        ({"type": "for_each", "path": "$.a", "processors": [{"type": "to_string"}]}, {"a": 1}, {"a": 1}),
        ({"type": "set_field", "path": "$", "value": [1]}, {"a": 1}, [1]),
        ({"type": "remove_jsonpath", "path": "$"}, {"a": 1}, {"a": 1}),
        ({"type": "process_and_set", "path": "$.x.y", "processors": [{"type": "to_string"}]}, {"a": 1}, {"a": 1}),
    ],
)
def test_a_processor_does_its_one_thing_and_leaves_what_does_not_fit(
    config: dict[str, Any], value: Any, expected: Any
) -> None:
    assert _run(value, config) == expected


@pytest.mark.parametrize(
    "config",
    [
        {"type": "remove_jsonpath", "path": "$.a"},
        {"type": "set_field", "path": "$.a", "value": 1},
        {"type": "process_and_set", "path": "$.a", "processors": [{"type": "to_string"}]},
        {"type": "for_each", "path": "$.a", "processors": [{"type": "to_string"}]},
    ],
)
def test_a_string_that_is_no_json_is_no_document_to_change(config: dict[str, Any]) -> None:
    assert _run("no json", config) == "no json"


def test_a_condition_without_a_path_is_about_the_whole_value() -> None:
    config = {"type": "conditional", "routes": [{"contains:yes": [{"type": "to_string", "escape_json": True}]}]}
    assert _run('"yes"', config) == '\\"yes\\"'
    assert _run("no", config) == "no"


@pytest.mark.parametrize(
    ("condition", "value", "matches"),
    [
        ("green", "green", True),
        ("green", "greenish", False),
        ("true", True, True),
        ("10", 10, True),
        ("exists", 0, True),
        ("exists", None, False),
        ("null", None, True),
        ("not_exists", None, True),
        ("not_exists", [], True),
        (">10", 10.5, True),
        (">10", 10, False),
        ("<10", "9", True),
        (">=10", 10, True),
        ("<=10", 10, True),
        ("==5", 5.0, True),
        (">x", 5, False),
        (">5", "text", False),
        ("regex:a.*c", "abc", True),
        ("regex:b", "abc", False),
        ("contains:b", "abc", True),
        ("contains:x", "abc", False),
    ],
)
def test_a_condition_decides_the_route(condition: str, value: Any, matches: bool) -> None:
    config = {
        "type": "conditional",
        "path": "$.v",
        "routes": [{condition: [{"type": "set_field", "path": "$.r", "value": "yes"}]}],
        "default": [{"type": "set_field", "path": "$.r", "value": "no"}],
    }
    assert _run({"v": value}, config)["r"] == ("yes" if matches else "no")


def test_the_first_route_that_matches_is_taken_and_an_absent_path_is_null() -> None:
    config = {
        "type": "conditional",
        "path": "$.gone",
        "routes": [{"exists": [], "null": [{"type": "to_string"}]}, {"not_exists": []}],
    }
    assert _run({"a": 1}, config) == '{"a":1}'


def test_each_processor_works_on_what_the_one_before_it_gave() -> None:
    chain = [
        {"type": "jsonpath_filter", "path": "$.text"},
        {"type": "extract_json"},
        {"type": "jsonpath_filter", "path": "$.a"},
    ]
    assert _run('{"text": "well: {\\"a\\": 5}"}', *chain) == 5


def test_the_value_that_is_processed_is_never_changed_itself() -> None:
    value = {"a": {"b": 1}}
    assert _run(value, {"type": "set_field", "path": "$.a.b", "value": 2}) == {"a": {"b": 2}}
    assert value == {"a": {"b": 1}}


def test_a_request_body_is_text_before_and_after() -> None:
    chain = compile_processors('{"type": "set_field", "path": "$.n", "value": 1}', "input_processors")
    assert chain.run_on_text('{"a": "é"}') == '{"a":"é","n":1}'


def test_a_pattern_that_would_take_years_elsewhere_takes_no_time() -> None:
    assert _run("a" * 5000, {"type": "regex_capture", "pattern": "^((a+)+)+b"}) == "a" * 5000


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("[{", "output_processors is not JSON: "),
        ('"x"', "output_processors must be an array of objects"),
        ("[1]", "output_processors must be an array of objects"),
        ('[{"type": "fly"}]', r"output_processors\[0\]\.type must be one of to_string, regex_replace"),
        ('[{"type": "regex_replace"}]', r"output_processors\[0\]\.pattern must be a string"),
        ('[{"type": "regex_replace", "pattern": "("}]', r"expression \[\(\] cannot be used: missing \)"),
        ('[{"type": "regex_replace", "pattern": "(?=a)"}]', "cannot be used: invalid perl operator"),
        ('[{"type": "regex_replace", "pattern": "a", "replacement": "$1"}]', r"replacement names group \$1, but the"),
        ('[{"type": "regex_replace", "pattern": "a", "replacement": "5$"}]', r"replacement has a lone \[\$\]"),
        ('[{"type": "regex_capture", "pattern": "a", "groups": "x"}]', r"output_processors\[0\]\.groups must be a num"),
        ('[{"type": "to_string"}, {"type": "jsonpath_filter"}]', r"output_processors\[1\]\.path must be a string"),
        ('[{"type": "jsonpath_filter", "path": "$["}]', r"\[\$\[\] is not a JSONPath"),
        ('[{"type": "extract_json", "extract_type": "x"}]', "extract_type must be 'auto', 'object', or 'array'"),
        ('[{"type": "remove_jsonpath"}]', r"output_processors\[0\]\.paths must be an array of JSONPaths"),
        ('[{"type": "conditional"}]', r"output_processors\[0\]\.routes must be an array"),
        ('[{"type": "conditional", "routes": [{"regex:(": []}]}]', "cannot be used: missing"),
        ('[{"type": "conditional", "routes": [{"a": [{}]}]}]', r"routes\[0\]\.a\[0\]\.type must be one of"),
        ('[{"type": "set_field", "path": "$.a"}]', r"output_processors\[0\] needs either value or source_path"),
        (
            '[{"type": "set_field", "path": "$.a", "value": 1, "default": 2}]',
            "default can only be used with source_path",
        ),
        ('[{"type": "for_each", "path": "$.a", "processors": []}]', r"processors must hold at least one"),
    ],
)
def test_a_wrong_configuration_is_refused_with_the_path_of_what_is_wrong(config: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        compile_processors(config, "output_processors")
