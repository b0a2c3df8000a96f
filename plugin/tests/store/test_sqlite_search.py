"""The embedded store's search says what it does not know; what it does know is in the store contract."""

from collections.abc import Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.plugin.store.query_string import parse_query_string
from opensearch_ml_stream.plugin.store.sqlite_fields import words
from opensearch_ml_stream.plugin.store.sqlite_search import search


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"suggest": {}}, r"search key \[suggest\] is not supported by the embedded store; it knows query, aggs"),
        ({"query": {"fuzzy": {"name": "a"}}}, r"query \[fuzzy\] is not supported .* it knows match_all"),
        ({"query": {"bool": {"must": [{"regexp": {}}]}}}, r"query \[regexp\]"),
        ({"query": {"wildcard": {"name": 5}}}, r"\[wildcard\] query needs a string for \[name\]"),
        ({"query": {"range": {"a": {"over": 1}}}}, r"\[over\] in \[range\]"),
        ({"query": {"query_string": {"query": "a"}}}, r"\[query_string\] needs the names of its \[fields\]"),
        ({"query": {"query_string": {"query": 1, "fields": ["name"]}}}, r"\[query_string\] needs its \[query\]"),
        ({"query": {"query_string": {"query": "name:a", "fields": ["name"]}}}, r"\[query_string\] with \[:\]"),
        ({"query": {"query_string": {"query": "a", "fields": ["n*"]}}}, r"each in full"),
        ({"query": {"query_string": {"query": "a " * 2000, "fields": ["name"]}}}, r"may have 1024 clauses"),
        ({"aggs": {"a": {"histogram": {}}}}, r"aggregation \[histogram\] is not supported .* it knows terms, top_hits"),
        ({"aggs": {"a": {"terms": {}}}}, r"\[terms\] aggregation needs the name of a \[field\]"),
        ({"aggs": {"a": {"terms": {"field": "name"}}}}, r"use \[name.keyword\] instead"),
        ({"aggs": {"a": {"terms": {"field": "name.keyword", "order": {"x": "asc"}}}}}, r"order \[x\] \[asc\]"),
        ({"sort": ["no_such_field"]}, r"No mapping found for \[no_such_field\] in order to sort on"),
        ({"query": {"match": {"name": {"query": "a", "fuzziness": 1}}}}, r"\[fuzziness\] in \[match\]"),
        ({"query": {"match": {"name": {"query": "a", "operator": "xor"}}}}, "operator of .* must be or, and"),
        ({"query": {"term": {"a": 1, "b": 2}}}, r"\[term\] must name exactly one thing, not 2"),
        ({"query": {"term": {"a": {"x": 1}}}}, r"\[x\] in \[term\]"),
        ({"query": {"term": {"a": None}}}, r"value for \[a\]"),
        ({"query": {"terms": {"a": "x"}}}, r"\[terms\] query needs an array"),
        ({"query": {"exists": {"field": 1}}}, r"\[exists\] query needs the name"),
        ({"query": {"bool": {"minimum_should_match": "50%"}}}, r"minimum_should_match \[50%\]"),
        ({"query": []}, r"\[query\] must be an object"),
        ({"query": {}}, r"\[query\] must name exactly one thing, not 0"),
        ({"sort": [{"name": "sideways"}]}, "order of .sort. must be asc or desc"),
        ({"sort": [{"name": {"mode": "avg"}}]}, r"\[mode\] in \[sort\]"),
        ({"from": "1"}, r"\[from\] must be an integer"),
        ({"size": True}, r"\[size\] must be an integer"),
        ({"from": 9999, "size": 2}, "Result window is too large"),
    ],
)
def test_what_is_not_known_is_named(body: Mapping[str, Any], reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        search(Index.MODEL, "models", [Document("m", {"name": "x"}, 1, 0, 1)], body)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GPT-4o mini", ["gpt", "4o", "mini"]),
        ("model v1.5, 3.25 and 1,000", ["model", "v1.5", "3.25", "and", "1,000"]),
        ("api.openai.com/v1", ["api.openai.com", "v1"]),
        ("don't snake_case a:b", ["don't", "snake_case", "a:b"]),
        ("検索 test", ["検", "索", "test"]),
        ("--", []),
    ],
)
def test_words_are_those_of_the_standard_analyser(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_aggregations_are_nested_only_so_deep() -> None:
    aggregation: dict[str, Any] = {"terms": {"field": "name.keyword"}}
    for _ in range(5):
        aggregation = {"terms": {"field": "name.keyword"}, "aggs": {"below": aggregation}}
    with pytest.raises(InvalidRequest, match="nested 5 deep"):
        search(Index.MODEL, "models", [Document("m", {"name": "x"}, 1, 0, 1)], {"aggs": {"a": aggregation}})


@pytest.mark.parametrize(
    ("query", "operator", "clauses"),
    [
        ("a b", "or", [("a", "should"), ("b", "should")]),
        ("a b", "AND", [("a", "must"), ("b", "must")]),
        ("a AND b c", "or", [("a", "must"), ("b", "must"), ("c", "should")]),
        ("a OR b", "and", [("a", "should"), ("b", "should")]),
        ("a NOT b", "or", [("a", "should"), ("b", "must_not")]),
        ("+a -b !c d", "or", [("a", "must"), ("b", "must_not"), ("c", "must_not"), ("d", "should")]),
        ('"a b" AND NOT "c"', "or", [("a b", "must"), ("c", "must_not")]),
        ("", "or", []),
    ],
)
def test_a_query_string_is_read_as_lucene_does(query: str, operator: str, clauses: list[tuple[str, str]]) -> None:
    assert [(clause.text, clause.occurs) for clause in parse_query_string(query, operator)] == clauses
