"""YAML bodies and responses."""

import contextlib
import json
from typing import Any

import pytest
import yaml

from opensearch_ml_stream.connectors.errors import BodyTooLarge, InvalidRequest
from opensearch_ml_stream.rest_handlers.http.yaml_text import MAX_BYTES, to_json, to_yaml
from tests.counted_work import steps

VALUES: list[Any] = [
    {}, [], "x", 5, 0.5, None, True, {"a": 1}, ["a"], {"a": {"b": {"c": []}}}, [[1, [2]], {"a": {}}],
    {"yes": "no", "n": "null", "": "", "a b": "~", "a:": "- x", "1": "1", "-": "#", "Null": None},
    {"t": "line\nline\t\"quoted\" \\ back", "u": "\u4f60\u597d \U0001f600 \x7f\x85\x9f\u2028\ufeff\x00\x1f"},
    [{"a": 1, "b": [1, {"c": "d"}]}, {"e": [[]]}],
    {"actions": [{"method": "POST", "headers": {"k": "v"}}], "n": 1e300, "i": 2**70, "long": "x y " * 1000},
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
def test_what_is_written_as_yaml_is_read_back(value: Any) -> None:
    written = to_yaml(value)
    assert json.loads(to_json(written)) == value
    assert yaml.safe_load(written) == value


def test_a_response_is_laid_out_as_opensearch_does() -> None:
    value = {"name": "c", "parameters": {}, "actions": [{"method": "POST", "headers": {"k": "v"}}], "hits": [1, "a"]}
    assert to_yaml(value).decode() == (
        '---\nname: "c"\nparameters: {}\nactions:\n- method: "POST"\n  headers:\n    k: "v"\nhits:\n- 1\n- "a"\n'
    )


def test_deep_nesting_does_not_make_a_response_much_longer() -> None:
    value: Any = list(range(1000))
    for _ in range(100):
        value = [value]
    written = to_yaml(value)
    assert len(written) < 30_000
    assert yaml.safe_load(written) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb: [x, 'y', \"z\"]\nc: {d: ~, e: }", {"a": 1, "b": ["x", "y", "z"], "c": {"d": None, "e": None}}),
        ("a: yes\nb: 2020-01-01\nc: 1:30\nd: on", {"a": "yes", "b": "2020-01-01", "c": "1:30", "d": "on"}),
        ("a: true\nb: FALSE\nc: 'true'\nd: 0.5\ne: -3", {"a": True, "b": False, "c": "true", "d": 0.5, "e": -3}),
        ("a: |\n  one\n  two\nb: >\n  folded\n  text\n", {"a": "one\ntwo\n", "b": "folded text\n"}),
        ("# comment\n---\n1: a\ntrue: b\n...\n---\nsecond: document", {"1": "a", "true": "b"}),
        ("- a\n- - b\n  - c\n", ["a", ["b", "c"]]),
        ("{}", {}),
    ],
)
def test_a_body_is_read_with_the_scalars_of_json(text: str, value: Any) -> None:
    assert json.loads(to_json(text.encode())) == value


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"a: [", "did not find expected node content at line 2, column 1"),
        (b"a: &x 1\nb: *x", "aliases are not supported"),
        (b"a: !!python/object:os.system x", "tags are not supported"),
        (b"a: !x {}", "tags are not supported"),
        (b"{a: 1}: b", "the name of a field must be a string"),
        (b"a: \x01", "a character that is not allowed"),
        (b"a: \xff", "not UTF-8 at byte 3"),
        (b"[" * 300, "nested too deeply"),
        (b"- " * 300, "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_refused_without_repeating_it(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        to_json(body)
    assert reason in caught.value.reason
    assert "python" not in caught.value.reason


def test_a_long_yaml_body_is_refused() -> None:
    with pytest.raises(BodyTooLarge, match="send JSON"):
        to_json(b"a" * (MAX_BYTES + 1))


@pytest.mark.parametrize(
    ("piece", "most"),
    [
        *[(piece, 50_000) for piece in (b"[", b"? ", b"- ", b"{a: ", b"[a, ")],  # nested: refused at a depth
        *[(piece, 1_000) for piece in (b"&a ", b"%a b\n", b"'x\n", b"[], ", b"{}")],
        (b"a:\n", 100 * (MAX_BYTES // 3)),  # so many members, each read
    ],
)
def test_no_body_takes_many_steps(piece: bytes, most: int) -> None:
    def read() -> None:
        with contextlib.suppress(InvalidRequest):
            to_json(piece * (MAX_BYTES // len(piece)))

    assert steps(read) < most
