"""The embedded store's search says what it does not know; what it does know is in the store contract."""

from collections.abc import Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.plugin.store.sqlite_field_values import words
from opensearch_ml_stream.plugin.store.sqlite_search import search


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"aggs": {}}, r"search key \[aggs\] is not supported by the embedded store; it knows query, sort"),
        ({"query": {"range": {"created_time": {"gt": 1}}}}, r"query \[range\] is not supported .* it knows match_all"),
        ({"query": {"bool": {"must": [{"wildcard": {}}]}}}, r"query \[wildcard\]"),
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
