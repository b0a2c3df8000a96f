"""JSONPath with the rules of ML Commons."""

from typing import Any

import jsonpath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.jsonpath import MAX_PATH_CHARS, MISSING, compile_path
from opensearch_ml_stream.connectors.syntax.work_limit import WorkLimit

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
        ("@.a.b-c[0]", 1),
        ("@", _DOCUMENT),
        ("$['n','s']", {"n": None, "s": "text"}),
        ("$['gone','s']", {"s": "text"}),
        ("$.l[0]['x','y']", {"x": 1}),
        ("$.l[*]['x','y']", [{"x": 1}, {"y": 2}, {"x": [3]}]),
        ("$..['s','n']", [{"s": "text", "n": None}]),
        ("$.s['x','y']", MISSING),
        ("$['a','s'].b-c", [[1, {"x": 2}]]),
    ],
)
def test_a_definite_path_gives_the_value_and_any_other_the_list_of_values(path: str, expected: object) -> None:
    assert compile_path(path).read(_DOCUMENT) == expected


_NUMBERS: Any = {
    "l": [3, True, 1, "s", 2],
    "e": [],
    "o": {"k": [4, 6], "m": "s"},
    "t": ["a", 1, "b"],
    "x": [[1], [5, 7]],
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.l.length()", 5),
        ("$.o.size()", 2),
        ("$.o.m.length()", None),
        ("$.l.max()", 3.0),
        ("$.l.min()", 1.0),
        ("$.l.sum()", 6.0),
        ("$.l.avg()", 2.0),
        ("$.l.stddev()", 0.8164965809277263),
        ("$.o.keys()", ["k", "m"]),
        ("$.l.keys()", None),
        ("$.l.first()", 3),
        ("$.l.last()", 2),
        ("$.l.index(2)", 1),
        ("$.l.index(-2)", "s"),
        ('$.l.append(4, {"a": "),"})', [3, True, 1, "s", 2, 4, {"a": "),"}]),
        ("$.o.append(4)", {"k": [4, 6], "m": "s"}),
        ("$.t.concat()", "ab"),
        ('$.t.concat("!", $.o.k, $.l)', "ab!463true1s2"),
        ("$.t.concat('y')", "ab"),  # Jayway passes over what is in single quotes
        ("$.sum(1, $.o.k, -2)", 9.0),
        ("$.l.sum($.o.k.max())", 12.0),
        ("$.x[*].length()", [1, 2]),
        ("$.x[*].index(1)", [7]),
        ("$..k[*].sum()", 10.0),
        ("$..k.sum()", MISSING),
        ("$..k.length()", 2),
        ("$.x.last().first()", 5),
        ("$.x.last()[1]", 7),
        ("$.x[*].last()", [1, 7]),
        (" $.x.last()[0].length() ", None),
        ("$.e.max()", MISSING),
        ("$.o.sum()", MISSING),
        ("$.e.first()", MISSING),
        ("$.l.index(5)", MISSING),
        ('$.l.index("a")', MISSING),
        ("$.l.sum($.gone)", MISSING),
        ("$.gone.length()", MISSING),
        ("$['l.max()']", MISSING),
    ],
)
def test_a_function_at_the_end_of_a_path_computes_with_what_it_finds(path: str, expected: object) -> None:
    assert repr(compile_path(path).read(_NUMBERS)) == repr(expected)


def test_what_a_function_adds_is_not_shared_between_readings() -> None:
    path = compile_path('$.append({"a": 1})')
    first: Any = path.read([])
    first[0]["a"] = 2
    assert path.read([]) == [{"a": 1}]


def test_a_sum_that_no_number_can_hold_is_missing() -> None:
    assert compile_path("$.sum()").read([1e308, 1e308]) is MISSING
    assert compile_path("$.max()").read([10**400]) is MISSING


@pytest.mark.parametrize(
    "path", ["$.l.max(", "$.l.magic()", "$.l.append({)", "$.l.append(1x)", "$.l.first()[*]", "$" + ".max()" * 11,
             "$.sum(" + "$.l.sum(" * 10 + ")" * 11, "$.l[?(@.length() > 1)]"],
)  # fmt: skip
def test_a_function_that_cannot_be_compiled_is_refused(path: str) -> None:
    with pytest.raises(InvalidRequest):
        compile_path(path)


def test_what_a_function_computes_is_no_place_to_edit() -> None:
    with pytest.raises(InvalidRequest, match="ends in a function, which is no place in a document"):
        compile_path("$.l.first()").find_nodes(_NUMBERS)


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


def _nest(depth: int, innermost: object) -> Any:
    for _ in range(depth):
        innermost = [innermost]
    return innermost


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("$..*..*..*..*..*", _nest(60, 1)),
        ("$..[?count(@..*)>1]", _nest(600, 1)),
        ("$[?@ in $]", [[number] for number in range(3000)]),
        ("$..[?@ == $]", _nest(600, 1)),
        ("$[" + "0," * 900 + "0]", [list(range(10_000))]),
        ("$[*]['" + "','".join("abc" * 100) + "']", [{}] * 1000),
        ("$" + ".append(1)" * 10, list(range(6_000))),
        ("$[*].sum($)", [[1]] * 1000),
        ("$[*].concat($)", ["a" * 10_000] * 100),
        ("$[?@ subsetof $[0]]", [list(range(1000))] * 3),
        ("$[?@ noneof $[1]]", [[-1] * 1000, list(range(1000))]),
        ("$[" + "0," * 900 + "0]", ["a" * 10_000]),
        ("$..*", _nest(900, "a" * 100_000)),
        ("$[?match(@.t, @.p)]", [{"t": "a", "p": f"{number}" + "a" * 1000} for number in range(100)]),
        ("$[?match(@.t, @.p)]", [{"t": "a", "p": f"{number}" + r"\pL{9}"} for number in range(20)]),
        ("$[?" + "@.x == 1 || " * 100 + "@.x]", [{"x": 0}] * 3000),
    ],
)
def test_a_path_that_takes_too_much_work_for_its_document_is_refused(path: str, document: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"The JSONPath \[.*\] takes more than 50000 steps of work"):
        compile_path(path).read(document)


def test_a_query_of_the_root_in_a_filter_is_evaluated_once() -> None:
    document = [{"a": number} for number in range(3000)]
    assert len(compile_path("$[?count($..*) > 1]").select(document)) == 3000


def test_work_is_allowed_by_the_size_of_the_input() -> None:
    document = [{"x": [number]} for number in range(40_000)]
    with pytest.raises(InvalidRequest, match="The path takes more than 50000"):
        compile_path("$..x").read(document, WorkLimit("The path", 1 << 10))
    assert len(compile_path("$..x").select(document, WorkLimit("The path", 4 << 20))) == 40_000


def test_a_document_may_be_nested_to_any_depth() -> None:
    document = _nest(20_000, {"x": 1})
    assert compile_path("$..x").read(document) == [1]
    assert compile_path("$[?@ == $[0]]").read(document) == [document[0]]
    while isinstance(document, list):  # Python would free it recursively
        document = document.pop()


@pytest.mark.parametrize(
    "path",
    ["$" + "[?@" * 400 + "]" * 400, "$[?" + "(" * 900 + "@", "$[?" + "!" * 1900 + "@]",
     "$[?@ == 1e999]", "$[?@ =~ /(/]", "$[99999999999999999]", "$[a]", "$[$.a]", "$.~a", "^", "$[?# == 1]", "$[?_.a]",
     "$[?is(@, 'string')]", "$[?@.a == [@.b]]", "$[?/a/ == @]", "$[?@.a =~ '(']", "$.a & $.b", "$['\\ud800"],
)  # fmt: skip
def test_a_path_that_cannot_be_compiled_is_refused(path: str) -> None:
    with pytest.raises(InvalidRequest):
        compile_path(path)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("@ == 1", [1]),
        ("@ == true", [True]),
        ("@ == null", [None]),
        ("@ == [1, true]", [[1, True]]),
        ("@ != 1", [True, None, "b", "bb", [1, True], [1, 1], {"a": 2}]),
        ("@ <> 1", [True, None, "b", "bb", [1, True], [1, 1], {"a": 2}]),
        ("@ < 'bb'", ["b"]),
        ("@ <= 'bb'", ["b", "bb"]),
        ("@ >= 1", [1]),
        ("@ > 0", [1]),
        ("@ in ['b', 1]", [1, "b"]),
        ("@ in 'abb'", ["b", "bb"]),
        ("@ contains 'b'", ["b", "bb"]),
        ("@ contains true", [[1, True]]),
        ("@ contains 'a'", [{"a": 2}]),
        ("@.a == 2 && @.b == undefined", [{"a": 2}]),
        ("!@.a && @ != 'b'", [1, True, None, "bb", [1, True], [1, 1]]),
        ("length(@) == 2", ["bb", [1, True], [1, 1]]),
        ("count(@.*) == 2", [[1, True], [1, 1]]),
        ("value(@.*) == 2", [{"a": 2}]),
        ("@ == $[5][0]", [1]),
        ("search(@, $[3])", ["b", "bb"]),
        ("match(@, 'B')", []),
        ("search(@, $[0])", []),
        ("@[?@ == 2]", [{"a": 2}]),
        ("@ nin ['b', 1]", [True, None, "bb", [1, True], [1, 1], {"a": 2}]),
        ("@ nin 1", [1, True, None, "b", "bb", [1, True], [1, 1], {"a": 2}]),
        ("@.a nin [2]", [1, True, None, "b", "bb", [1, True], [1, 1]]),
        ("@ size 2", ["bb", [1, True], [1, 1]]),
        ("@ size 'a'", []),
        ("@ empty false", ["b", "bb", [1, True], [1, 1], {"a": 2}]),
        ("@ empty true", []),
        ("@ subsetof [1, 2]", [[1, 1]]),
        ("@ anyof [true]", [[1, True]]),
        ("@ noneof [true]", [[1, 1]]),
        ("@ all [1]", [[1, True], [1, 1]]),
        ("@ == ' nin '", []),
        ("(@ size 2) && @ nin ['bb']", [[1, True], [1, 1]]),
    ],
)
def test_a_filter_compares_json_values(condition: str, expected: list[Any]) -> None:
    document = [1, True, None, "b", "bb", [1, True], [1, 1], {"a": 2}]
    assert repr(compile_path(f"$[?{condition}]").read(document)) == repr(expected)


def test_a_path_has_ten_patterns_at_most() -> None:
    assert compile_path("$[?" + " || ".join(["@ =~ /a/"] * 5 + ["match(@, 'b')"] * 5) + "]").read(["b"]) == ["b"]
    with pytest.raises(InvalidRequest, match="A JSONPath may have 10 regular expressions"):
        compile_path("$[?" + " || ".join(["search(@, 'b')"] * 11) + "]")


def test_a_pattern_of_the_document_that_is_wrong_matches_nothing() -> None:
    assert compile_path("$[?match(@.t, @.p)]").read([{"t": "(", "p": "("}, {"t": "b", "p": "[ab]"}]) == [
        {"t": "b", "p": "[ab]"}
    ]


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


_SEGMENTS = st.lists(
    _NAMES.map(".{}".format)
    | st.sampled_from(["[0]", "[-1]", "[*]", "..*", "..a", "..[0]", "[0,-1]", "['a','b']", "[1:]", "[::-1]", "[?@.a]"])
    | st.sampled_from(
        ["[?@.a == 1 || @.b]", "[?count(@.*) > 1]", "[?!@.b && @.a != 2]", "[?@[0] == $[0]]", "..[?@ > 1]"]
    ),
    max_size=3,
)


@given(_DOCUMENTS.filter(lambda document: isinstance(document, dict | list)), _SEGMENTS)
def test_every_path_finds_the_nodes_that_the_library_finds(document: Any, parts: list[str]) -> None:
    source = "$" + "".join(parts)
    nodes = compile_path(source).find_nodes(document)
    matches = list(jsonpath.finditer(source, document))
    assert [node.value for node in nodes] == [match.obj for match in matches]
    assert [node.key for node in nodes if node.container is not None] == [
        match.parts[-1] for match in matches if match.parts
    ]
