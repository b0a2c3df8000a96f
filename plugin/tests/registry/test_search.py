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
        {"highlight": {"fields": {"name": {"highlight_query": {"match": {"description": "x"}}}}, "pre_tags": ["<b>"]}},
        {"highlight": {"fields": [{"name": {"matched_fields": ["name", "name.keyword"]}}]}},
        {"fields": ["name", {"field": "created_time", "format": "yyyy"}], "docvalue_fields": ["created_time"]},
        {"stored_fields": ["name"], "explain": True, "profile": True, "rescore": {"query": {"rescore_query": {}}}},
        {"suggest": {"text": "x", "one": {"term": {"field": "name"}}, "two": {"phrase": {"field": "name"}}}},
        {"query": {"simple_query_string": {"query": "x +y", "fields": ["name^2", "description"]}}},
        {"query": {"combined_fields": {"query": "x", "fields": ["name", "description"]}}},
        {"query": {"dis_max": {"queries": [{"match_all": {}}, {"term": {"name": "x"}}], "tie_breaker": 0.1}}},
        {"query": {"boosting": {"positive": {}, "negative": {"term": {"name": "x"}}, "negative_boost": 0.5}}},
        {
            "query": {
                "function_score": {
                    "query": {},
                    "weight": 2,
                    "functions": [
                        {
                            "filter": {"term": {"name": "x"}},
                            "gauss": {"created_time": {"origin": "now", "scale": "1d"}},
                        },
                        {"field_value_factor": {"field": "created_time"}},
                        {"random_score": {"seed": 1, "field": "_seq_no"}},
                    ],
                }
            }
        },
        {"query": {"distance_feature": {"field": "created_time", "origin": "now", "pivot": "1d"}}},
        {"query": {"intervals": {"name": {"match": {"query": "x y", "use_field": "description"}}}}},
        {"query": {"terms_set": {"name": {"terms": ["x"], "minimum_should_match_field": "version"}}}},
        {"aggs": {"a": {"filters": {"filters": {"x": {"match_all": {}}}}, "aggs": {"b": {"top_hits": {}}}}}},
        {"aggs": {"a": {"adjacency_matrix": {"filters": {"x": {"match_all": {}}}}}, "b": {"global": {}}}},
        {"aggs": {"a": {"composite": {"sources": [{"n": {"terms": {"field": "name.keyword"}}}]}}}},
        {"aggs": {"a": {"multi_terms": {"terms": [{"field": "name.keyword"}, {"field": "version"}]}}}},
        {
            "aggs": {
                "a": {
                    "date_histogram": {"field": "created_time", "fixed_interval": "1d"},
                    "aggs": {
                        "n": {"sum": {"field": "version"}},
                        "d": {"derivative": {"buckets_path": "n"}},
                    },
                }
            }
        },
        {"aggs": {"a": {"top_hits": {"highlight": {"fields": {"name": {}}}, "fields": ["name"]}}}},
        {"aggs": {"a": {"terms": {"field": "name", "min_doc_count": 0}}}},
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
        {"fields": ["connector"]},
        {"docvalue_fields": [{"field": "connector.credential.k"}]},
        {"highlight": {"fields": {"connector.credential.k": {}}}},
        {"highlight": {"fields": {"name": {"matched_fields": ["connector.credential.k"]}}}},
        {"highlight": {"fields": {"name": {}}, "highlight_query": {"term": {"credential.k": "x"}}}},
        {"highlight": {"fields": {"name": {"highlight_query": {"prefix": {"credential.k": "A"}}}}}},
        {"suggest": {"x": {"text": "x", "phrase": {"field": "name", "collate": {"query": {"source": "{}"}}}}}},
        {"suggest": {"x": {"text": "x", "phrase": {"field": "name", "direct_generator": [{"field": "credential.k"}]}}}},
        {"rescore": {"query": {"rescore_query": {"prefix": {"credential.k": "A"}}}}},
        {"rescore": {"query": {"rescore_query": {"match_all": {}}}, "learning": {}}},
        {"query": {"simple_query_string": {"query": "AgV"}}},
        {"query": {"simple_query_string": {"query": "AgV", "fields": ["credential.k"]}}},
        {"query": {"combined_fields": {"query": "AgV", "fields": ["credential.k"]}}},
        {"query": {"dis_max": {"queries": [{"prefix": {"credential.k": "A"}}]}}},
        {"query": {"boosting": {"positive": {"match_all": {}}, "negative": {"prefix": {"credential.k": "A"}}}}},
        {"query": {"function_score": {"query": {"prefix": {"credential.k": "A"}}}}},
        {"query": {"function_score": {"functions": [{"filter": {"prefix": {"credential.k": "A"}}, "weight": 2}]}}},
        {"query": {"function_score": {"script_score": {"script": "1"}}}},
        {"query": {"function_score": {"functions": [{"script_score": {"script": "1"}}]}}},
        {"query": {"function_score": {"field_value_factor": {"field": "credential.k"}}}},
        {"query": {"function_score": {"gauss": {"credential.k": {"origin": 1, "scale": 1}}}}},
        {"query": {"distance_feature": {"field": "credential.k"}}},
        {"query": {"intervals": {"name": {"match": {"query": "A", "use_field": "credential.k"}}}}},
        {"query": {"intervals": {"name": {"match": {"query": "A", "filter": {"script": "1"}}}}}},
        {"query": {"terms_set": {"name": {"terms": ["x"], "minimum_should_match_script": {"source": "1"}}}}},
        {"query": {"terms_set": {"name": {"terms": ["x"], "minimum_should_match_field": "credential.k"}}}},
        {"query": {"more_like_this": {"like": {"_index": ".plugins-ml-config", "_id": "master_key"}}}},
        {"query": {"script_score": {"query": {"match_all": {}}, "script": "1"}}},
        {"query": {"wrapper": {"query": "eyJtYXRjaF9hbGwiOnt9fQ=="}}},
        {"aggs": {"a": {"filters": {"filters": {"x": {"prefix": {"credential.k": "A"}}}}}}},
        {"aggs": {"a": {"filters": {"filters": [{"prefix": {"credential.k": "A"}}]}}}},
        {"aggs": {"a": {"adjacency_matrix": {"filters": {"x": {"prefix": {"credential.k": "A"}}}}}}},
        {"aggs": {"a": {"composite": {"sources": [{"n": {"terms": {"field": "credential.k"}}}]}}}},
        {"aggs": {"a": {"composite": {"sources": [{"n": {"terms": {"script": "1"}}}]}}}},
        {"aggs": {"a": {"multi_terms": {"terms": [{"field": "name"}, {"field": "credential.k"}]}}}},
        {"aggs": {"a": {"weighted_avg": {"value": {"field": "credential.k"}, "weight": {"field": "version"}}}}},
        {"aggs": {"a": {"bucket_script": {"buckets_path": {}, "script": "1"}}}},
        {"aggs": {"a": {"scripted_metric": {"map_script": "1"}}}},
        {"aggs": {"a": {"significant_terms": {"field": "name", "background_filter": {}}}}},
        {"aggs": {"a": {"rare_terms": {"field": "name", "background_filter": {}}}}},
        {"aggs": {"a": {"top_hits": {"fields": ["connector.credential.k"]}}}},
        {"aggs": {"a": {"top_hits": {"highlight": {"fields": {"credential.k": {}}}}}}},
        {"pit": {"id": "x"}},
        {"indices_boost": [{".plugins-ml-config": 2}]},
        {"derived": {"x": {"type": "keyword", "script": "1"}}},
    ],
)
def test_whatever_could_tell_a_credential_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match=r"^search: "):
        check_search(body)


@pytest.mark.parametrize(
    "body",
    [
        {"explain": True},
        {"profile": True},
        {"suggest": {"x": {"text": "x", "term": {"field": "name"}}}},
        {"aggs": {"a": {"global": {}}}},
        {"aggs": {"a": {"filter": {"match_all": {}}, "aggs": {"b": {"global": {}}}}}},
        {"aggs": {"a": {"terms": {"field": "name", "min_doc_count": 0}}}},
        {"aggs": {"a": {"multi_terms": {"terms": [{"field": "name"}], "min_doc_count": 0}}}},
    ],
)
def test_what_is_computed_from_the_whole_index_is_for_those_who_see_all_of_it(body: dict[str, Any]) -> None:
    check_search(body)
    with pytest.raises(InvalidRequest, match=r"^search: .*that you may not see|^search: .*you do not see everything"):
        check_search(body, sees_all=False)
