"""JSONPath with the rules of ML Commons."""

from typing import Any

import jsonpath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.jsonpath import MAX_PATH_CHARS, MISSING, compile_path

_DOCUMENT: Any = {"a": {"b-c": [1, {"x": 2}]}, "n": None, "l": [{"x": 1}, {"y": 2}, {"x": [3]}], "s": "text", "e": []}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", _DOCUMENT),
        ("$.a.b-c[1].x", 2),
        ("$['a']['b-c'][0]", 1),
        ("$.a.b-c[-1]", {"x": 2}),
        ("a.b-c[0]", 1),
        ("$.n", None),
        ("$.l[*].x", [1, [3]]),
        ("$.l[*].z", []),
        ("$.a.*", [[1, {"x": 2}]]),
        ("$.e[*]", []),
        ("$..x", [2, 1, [3]]),
        ("$.l[?(@.y == 2)]", [{"y": 2}]),
        ("$.l[?(@.y == 5)]", []),
        ("$.l[0:2]", [{"x": 1}, {"y": 2}]),
        ("$.l[0,2].x", [1, [3]]),
        ("$.l[?(@.x =~ /./)]", []),
        ("$[?(@ =~ /T.*/i)]", ["text"]),
        ("$[?(@ =~ /ex/)]", []),
        ("$[?match(@, 'te.*')]", ["text"]),
        ("$[?search(@, 'ex')]", ["text"]),
        ("$.s[*]", []),
        ("$.gone", MISSING),
        ("$.s.x", MISSING),
        ("$.l[3]", MISSING),
        ("$.a[0]", MISSING),
        ("$.gone[*].x", MISSING),
        ("$.gone[?(@.y == 2)]", MISSING),
        ("$.l[5]..x", MISSING),
    ],
)
def test_a_definite_path_gives_the_value_and_any_other_the_list_of_values(path: str, expected: object) -> None:
    assert compile_path(path).read(_DOCUMENT) == expected


def test_a_path_that_cannot_be_read_is_refused_with_the_reason() -> None:
    with pytest.raises(InvalidRequest, match=r"\[\$\.a\[\] is not a JSONPath that is understood here: "):
        compile_path("$.a[")
    with pytest.raises(InvalidRequest, match="joins several JSONPaths"):
        compile_path("$.a | $.b")


@pytest.mark.parametrize("path", ["$[1e400]", "$[1e+308]", "$[1e+3]"])
def test_an_index_that_is_no_integer_is_refused(path: str) -> None:
    with pytest.raises(InvalidRequest, match="not a JSONPath"):
        compile_path(path)


def test_a_path_that_is_too_long_is_refused() -> None:
    assert compile_path("$." + "a" * (MAX_PATH_CHARS - 2)).read({}) is MISSING
    with pytest.raises(InvalidRequest, match="may have 2000 characters; this one has 2001"):
        compile_path("$." + "a" * (MAX_PATH_CHARS - 1))


@pytest.mark.parametrize("condition", ["@ =~ /^(a+)+$/", "match(@, '(a+)+')", "search(@, '^(a+)+$')"])
def test_a_pattern_in_a_path_that_would_take_years_elsewhere_is_decided_at_once(condition: str) -> None:
    assert compile_path(f"$[?{condition}]").read(["a" * 50 + "!"]) == []


_NAMES = st.sampled_from(["a", "b"])
_DOCUMENTS = st.recursive(
    st.integers(0, 3), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=2)
)
_PATHS = st.lists(_NAMES.map(".{}".format) | st.sampled_from(["[0]", "[-1]", "[*]"]), max_size=4)


@given(_DOCUMENTS, _PATHS)
def test_plain_paths_read_what_the_library_reads(document: object, parts: list[str]) -> None:
    source = "$" + "".join(parts)
    value = compile_path(source).read(document)
    expected: list[object] = jsonpath.findall(source, document)  # type: ignore[arg-type]
    if "[*]" not in parts:
        value = [] if value is MISSING else [value]
    assert ([] if value is MISSING else value) == expected
