"""Search bodies, good ones with anything put into them: the embedded store finds documents, or refuses by name."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from integration_tests.fuzz.bounds import TIMEOUT_SECONDS, corpus, show, tries
from integration_tests.fuzz.mutations import Replacement, replaced, replacements

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.registry.search import search
from opensearch_ml_stream.plugin.store import Document, Index, sqlite_search
from opensearch_ml_stream.plugin.store.sqlite_search_bounds import MAX_STEPS, SearchWork

pytestmark = pytest.mark.timeout(TIMEOUT_SECONDS)

QUERIES: list[dict[str, Any]] = [
    {"match_all": {"boost": 1}},
    {"term": {"name": {"value": "one"}}},
    {"terms": {"model_state": ["DEPLOYED", "x"], "boost": 1}},
    {"terms": {"created_time": ["now", "0||/d", 5]}},
    {"match": {"name": {"query": "one two", "operator": "and"}}},
    {"match_phrase": {"description": {"query": "one two"}}},
    {"prefix": {"name.keyword": {"value": "o", "case_insensitive": True}}},
    {"wildcard": {"name": {"wildcard": "*n?", "case_insensitive": "false"}}},
    {"range": {"created_time": {"gte": "now-1d/d", "lt": "2024-01-01", "format": "yyyy-MM-dd"}}},
    {"range": {"version": {"gt": 1, "lte": "2.5"}}},
    {"query_string": {"query": '+one -"two three" AND t*', "fields": ["name^2"], "default_operator": "and"}},
    {"ids": {"values": ["a", 1]}},
    {"exists": {"field": "connector.parameters.a"}},
    {"nested": {"path": "user", "query": {"term": {"user.name": "ann"}}, "score_mode": "max"}},
    {"bool": {"must": [{"match_all": {}}], "should": {"ids": {"values": "a"}}, "minimum_should_match": 1}},
]
PARTS: dict[str, Any] = {
    "sort": [{"created_time": {"order": "desc", "unmapped_type": "long"}}, "_score", {"name.keyword": "asc"}],
    "aggs": {
        "a": {
            "terms": {"field": "model_state", "size": 3, "order": {"_key": "asc"}, "min_doc_count": 1},
            "aggs": {"b": {"top_hits": {"size": 2, "from": 1, "sort": ["created_time"], "_source": ["name"]}}},
        }
    },
    "from": 0,
    "size": 10,
    "_source": {"includes": ["name", "conn*"], "excludes": ["*.a"]},
    "track_total_hits": 2,
    "version": True,
}
ODD_SOURCES: list[dict[str, Any]] = [
    {"name": "one two", "model_state": "DEPLOYED", "created_time": 1_700_000_000_000, "version": 2},
    {"name": ["one", 1, None, {"x": 1}], "created_time": "now", "version": "x", "user": [{"name": "ann"}, 1]},
    {"name": {"keyword": "x"}, "created_time": 1e300, "version": True, "connector": {"parameters": [{"a": [[1]]}]}},
    {"name": 10**18, "created_time": -(10**18), "is_hidden": "maybe", "model_state": 1.5, "user": "ann"},
]
DOCUMENTS = [Document(str(number), source, 1, number, 1) for number, source in enumerate(ODD_SOURCES)]


class Searched:
    async def search_for_caller(self, index: Index, body: Mapping[str, Any]) -> dict[str, Any]:
        return sqlite_search.search(index, "models", DOCUMENTS, body, SearchWork(MAX_STEPS))


def find(body: Any) -> None:
    """Search as a caller does, and as the sidecar does; what comes back is JSON."""
    of_caller = search(Searched(), Index.MODEL, body, ["connector.credential"], {"match_all": {}})
    for found in (of_caller, Searched().search_for_caller(Index.MODEL, body)):
        try:
            json.dumps(asyncio.run(found), allow_nan=False)
        except InvalidRequest as error:
            assert error.reason


@pytest.mark.parametrize("case", corpus("searches"))
def test_a_search_that_once_failed_is_run_or_refused(case: dict[str, Any]) -> None:
    find(case["body"])


@tries(400)
@given(st.sampled_from(QUERIES), st.sets(st.sampled_from(sorted(PARTS))), replacements())
def test_a_search_is_run_or_refused(query: dict[str, Any], names: set[str], changes: list[Replacement]) -> None:
    good = {"query": query, **{name: PARTS[name] for name in sorted(names)}}
    body = replaced(json.loads(json.dumps(good)), changes)
    if isinstance(body, dict):
        show("searches", body=body)
        find(body)
