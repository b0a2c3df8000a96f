"""Parts of a JSON value by `filter_path`."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.syntax.filter_path import filter_path

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


def test_a_pattern_of_many_stars_takes_no_long_time() -> None:
    assert filter_path({"a" * 5000: 1}, ["*a" * 200 + "b"]) == {}
    assert filter_path({"a": {"a": {"a": 1}}}, ["**." * 200 + "b"]) == {}
