"""Searches that only a cluster knows: they are passed on, show no credential, and the embedded store refuses them."""

from typing import Any

import pytest
from integration_tests.management.management_server import CONNECTOR, open_test_registry

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.store import Store
from opensearch_ml_stream.rest_handlers.callers import ANYONE

NAMED = {"term": {"name.keyword": "Echo"}}
COUNTED = {"match": {"name": "echo"}}
SEARCHES: dict[str, dict[str, Any]] = {
    "highlight": {"query": COUNTED, "highlight": {"fields": {"name": {}}}},
    "fields": {"fields": ["name"]},
    "docvalue_fields": {"docvalue_fields": [{"field": "created_time", "format": "epoch_millis"}]},
    "explain": {"query": COUNTED, "explain": True},
    "profile": {"query": COUNTED, "profile": True},
    "suggest": {"query": COUNTED, "suggest": {"x": {"text": "echi", "term": {"field": "name"}}}},
    "rescore": {"query": COUNTED, "rescore": {"query": {"rescore_query": NAMED}, "window_size": 5}},
    "simple_query_string": {"query": {"simple_query_string": {"query": "echo +(a | echo)", "fields": ["name"]}}},
    "dis_max": {"query": {"dis_max": {"queries": [NAMED, {"match_none": {}}]}}},
    "boosting": {"query": {"boosting": {"positive": NAMED, "negative": {"term": {"x": 1}}, "negative_boost": 0.5}}},
    "function_score": {"query": {"function_score": {"query": NAMED, "weight": 2}}},
    "distance_feature": {"query": {"distance_feature": {"field": "created_time", "origin": "now", "pivot": "1d"}}},
    "intervals": {"query": {"intervals": {"name": {"match": {"query": "echo"}}}}},
    "filters": {
        "aggs": {"x": {"filters": {"filters": {"a": NAMED}}, "aggs": {"hits": {"top_hits": {"fields": ["name"]}}}}}
    },
    "composite": {
        "aggs": {
            "x": {
                "composite": {"sources": [{"n": {"terms": {"field": "name.keyword"}}}]},
                "aggs": {"hits": {"top_hits": {"highlight": {"fields": {"name": {}}}}}},
            }
        }
    },
    "adjacency_matrix": {
        "aggs": {"x": {"adjacency_matrix": {"filters": {"a": NAMED}}, "aggs": {"h": {"top_hits": {}}}}}
    },
    "multi_terms": {"aggs": {"x": {"multi_terms": {"terms": [{"field": "name.keyword"}, {"field": "algorithm"}]}}}},
    "global": {"query": {"match_none": {}}, "aggs": {"x": {"global": {}, "aggs": {"h": {"top_hits": {}}}}}},
    "percentiles": {"aggs": {"x": {"percentiles": {"field": "created_time"}}}},
}
SHOWN = {
    "highlight": '"highlight":{"name":["<em>Echo</em>"]}',
    "fields": '"fields":{"name":["Echo"]}',
    "explain": '"_explanation":',
    "profile": '"profile":{',
    "suggest": '"options":[{"text":"echo"',
    "filters": '"buckets":{"a":{"doc_count":1',
    "composite": '"after_key":{"n":"Echo"}',
}


@pytest.mark.parametrize("name", SEARCHES)
async def test_a_search_that_leaks_nothing_is_the_clusters_to_answer(store: Store, name: str) -> None:
    registry = open_test_registry(store)
    await registry.models.register(
        ANYONE, {"name": "Echo", "function_name": "remote", "connector": CONNECTOR}, deploy=False
    )
    if store.cluster is None:
        with pytest.raises(InvalidRequest):
            await registry.models.search(ANYONE, SEARCHES[name])
        return
    response = await registry.models.search(ANYONE, SEARCHES[name])
    text = jsontext.dumps(response)
    assert "credential" not in text.replace("${credential.key}", "")
    assert '"_id"' in text
    assert SHOWN.get(name, "") in text


async def test_stored_fields_are_taken_and_show_the_source_all_the_same(store: Store) -> None:
    registry = open_test_registry(store)
    await registry.models.register(
        ANYONE, {"name": "Echo", "function_name": "remote", "connector": CONNECTOR}, deploy=False
    )
    response = await registry.models.search(ANYONE, {"stored_fields": ["name"], "_source": ["name"]})
    [hit] = response["hits"]["hits"]
    assert hit["_source"] == {"name": "Echo"}
