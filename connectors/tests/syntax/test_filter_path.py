"""Parts of a JSON value by `filter_path`."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.filter_path import MAX_PATTERN_CHARS, MAX_STARS, FieldFilter, filter_path

BODY: dict[str, Any] = {
    "took": 3,
    "hits": {"total": {"value": 2}, "hits": [{"_id": "a", "_source": {"name": "x"}}, {"_id": "b", "_source": {}}]},
    "a.b": {"c": 1},
}


@pytest.mark.parametrize(
    ("patterns", "kept"),
    [
        (["took"], {"took": 3}),
        (["hits.total.value"], {"hits": {"total": {"value": 2}}}),
        (["hits.hits._id"], {"hits": {"hits": [{"_id": "a"}, {"_id": "b"}]}}),
        (["hits.hits._source"], {"hits": {"hits": [{"_source": {"name": "x"}}, {"_source": {}}]}}),
        (["hits.*.value"], {"hits": {"total": {"value": 2}}}),
        (["**.name"], {"hits": {"hits": [{"_source": {"name": "x"}}]}}),
        (["t*k"], {"took": 3}),
        (["to*ook*"], {}),
        (["t*o*k"], {"took": 3}),
        (["*o*o*"], {"took": 3}),
        (["*o*o*o*"], {}),
        (["to*ok"], {"took": 3}),
        (["too*ook"], {}),
        (["hits.total.**"], {"hits": {"total": {"value": 2}}}),
        (["**"], BODY),
        (["took.**"], {}),
        ([r"a\.b.c"], {"a.b": {"c": 1}}),
        (["nothing"], {}),
        (["took", "a*"], {"took": 3, "a.b": {"c": 1}}),
        (["-hits", "-a*"], {"took": 3}),
        (["hits", "-hits.hits"], {"hits": {"total": {"value": 2}}}),
        (["-**._source", "-hits.total", "-a*"], {"took": 3, "hits": {"hits": [{"_id": "a"}, {"_id": "b"}]}}),
        ([" took "], {"took": 3}),
        ([], BODY),
    ],
)
def test_a_pattern_keeps_what_it_names(patterns: list[str], kept: Any) -> None:
    assert filter_path(BODY, patterns) == kept


@settings(deadline=None)  # the machine may be busy
@given(st.dictionaries(st.text("abc", min_size=1), st.dictionaries(st.text("abc", min_size=1), st.integers())))
def test_what_a_pattern_includes_and_what_it_excludes_make_the_whole(body: dict[str, Any]) -> None:
    kept, left = filter_path(body, ["a*"]), filter_path(body, ["-a*"])
    assert kept | left == body
    assert not kept.keys() & left.keys()


def test_any_number_of_double_stars_in_a_row_means_the_same_as_one() -> None:
    body = {"a": {"a": {"b": 1, "c": 2}}}
    assert filter_path(body, ["**." * 3000 + "b"]) == filter_path(body, ["**.b"]) == {"a": {"a": {"b": 1}}}
    assert filter_path(body, ["a." + "**." * 3000 + "**"]) == body


def test_more_text_or_stars_in_patterns_than_is_allowed_is_refused_with_the_limit() -> None:
    assert filter_path({"a" * 5000: 1}, ["*a" * MAX_STARS + "b"]) == {}
    with pytest.raises(InvalidRequest, match="may have 20 stars; one has 21"):
        filter_path({}, ["x.*" + "*a" * MAX_STARS])
    assert filter_path({"a": 1}, ["a", "b" * (MAX_PATTERN_CHARS - 1)]) == {"a": 1}
    with pytest.raises(InvalidRequest, match="may have 10000 characters; these have 10001"):
        filter_path({}, ["a", "b" * MAX_PATTERN_CHARS])


def test_many_patterns_on_many_keys_are_refused_when_they_take_too_much_work() -> None:
    body = {f"name-{number}": 1 for number in range(1000)}
    assert len(filter_path(body, [f"n*{digit}" for digit in range(10)])) == 1000
    with pytest.raises(
        InvalidRequest, match="Matching the patterns of filter_path or _source takes more than 50000 steps"
    ):
        filter_path(body, [f"n*{number}" for number in range(1000)])


@pytest.mark.parametrize("pattern", ["**.b", "-**.c", "a.**", "-a.b"])
def test_a_value_may_be_nested_to_any_depth(pattern: str) -> None:
    body: Any = {"b": 1}
    for _ in range(10_000):
        body = {"a": [body]}
    kept = filter_path(body, [pattern])
    for _ in range(10_000):
        kept = kept["a"][0]
    assert kept == {"b": 1}


def test_one_filter_does_several_values() -> None:
    names = FieldFilter(["a", "-a.b"])
    assert [names.apply(value) for value in ({"a": {"b": 1, "c": 2}}, {"b": 1}, {"a": 1})] == [
        {"a": {"c": 2}},
        {},
        {"a": 1},
    ]
