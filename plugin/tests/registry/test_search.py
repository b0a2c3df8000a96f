from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.registry.search import check_search


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": {"match_all": {}}, "size": 3, "from": 1, "sort": [{"created_time": {"order": "desc"}}, "_score"]},
        {"query": {"bool": {"must": [{"term": {"name.keyword": "x"}}], "must_not": {"exists": {"field": "chunk"}}}}},
        {"query": {"bool": {"filter": [{"terms": {"model_state": ["DEPLOYED"]}}], "minimum_should_match": 1}}},
        {"query": {"nested": {"path": "user", "query": {"match": {"user.name": "x"}}}}},
        {"query": {"constant_score": {"filter": {"range": {"created_time": {"gte": 1}}}}}},
        {"query": {"multi_match": {"query": "x", "fields": ["name^2", "description"]}}},
        {"aggs": {"states": {"terms": {"field": "model_state"}, "aggs": {"n": {"max": {"field": "created_time"}}}}}},
        {"query": {"term": {"name": "x", "boost": 2, "_name": "q"}}, "post_filter": {"match_all": {}}},
        {"aggs": {"a": {"filter": {"term": {"name": "x"}}, "meta": {"credential": 1}}}},
        {"_source": ["name", "model_*"], "collapse": {"field": "model_group_id"}},
    ],
)
def test_ordinary_searches_are_let_through(body: dict[str, Any]) -> None:
    check_search(body)


@pytest.mark.parametrize(
    "body",
    [
        {"query": {"term": {"credential.openAI_key": "x"}}},
        {"query": {"prefix": {"connector.credential._value": "AgV"}}},
        {"query": {"exists": {"field": "credential"}}},
        {"query": {"exists": {"field": "cred*"}}},
        {"query": {"bool": {"should": [{"bool": {"must_not": {"wildcard": {"credential.k": "A*"}}}}]}}},
        {"query": {"nested": {"path": "x", "query": {"term": {"credential.k": "x"}}}}},
        {"query": {"constant_score": {"filter": {"term": {"credential.k": "x"}}}}},
        {"query": {"multi_match": {"query": "AgV", "fields": ["*"]}}},
        {"query": {"multi_match": {"query": "AgV"}}},
        {"query": {"multi_match": {"query": "AgV", "fields": ["credential.k^3"]}}},
        {"query": {"query_string": {"query": "credential.k:AgV"}}},
        {"query": {"script": {"script": "true"}}},
        {"query": {"terms": {"name": {"index": ".plugins-ml-config", "id": "master_key", "path": "master_key"}}}},
        {"post_filter": {"term": {"credential.k": "x"}}},
        {"sort": "credential.k"},
        {"sort": [{"_script": {"script": "x"}}]},
        {"sort": [{"name": {"nested": {"filter": {"term": {"credential.k": "x"}}}}}]},
        {"aggs": {"a": {"terms": {"field": "credential.k"}}}},
        {"aggs": {"a": {"terms": {"script": "x"}}}},
        {"aggs": {"a": {"terms": {"field": "name", "script": "x"}}}},
        {"aggs": {"a": {"top_hits": {"docvalue_fields": ["credential.k"]}}}},
        {"aggs": {"a": {"top_hits": {"script_fields": {"x": {"script": "1"}}}}}},
        {"aggs": {"a": {"top_hits": {"sort": ["connector.credential.k"]}}}},
        {"aggs": {"a": {"terms": {"field": "name"}, "aggs": {}, "aggregations": {}}}},
        {"aggs": {}, "aggregations": {"a": {"top_hits": {}}}},
        {"query": {"query_string": {"query": "x"}}},
        {"query": {"query_string": {"query": "x", "default_field": "credential.k"}}},
        {"query": {"query_string": {"query": "credential.k:x", "fields": ["name"]}}},
        {"query": {"query_string": {"query": "x", "fields": ["connector.credential.*"]}}},
        {"aggs": {"a": {"filter": {"term": {"credential.k": "x"}}}}},
        {"aggs": {"a": {"terms": {"field": "name"}, "aggs": {"b": {"terms": {"field": "credential.k"}}}}}},
        {"collapse": {"field": "credential.k"}},
        {"collapse": {"field": "name", "inner_hits": {"name": "x"}}},
        {"fields": ["*"]},
        {"docvalue_fields": ["credential.k"]},
        {"stored_fields": ["_source"]},
        {"script_fields": {"x": {"script": "params._source.credential"}}},
        {"highlight": {"fields": {"*": {}}}},
        {"suggest": {"x": {"text": "x", "term": {"field": "credential.k"}}}},
        {"runtime_mappings": {}},
        {"query": []},
        {"aggs": {"a": 1}},
    ],
)
def test_whatever_could_tell_a_credential_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match=r"^search: "):
        check_search(body)
