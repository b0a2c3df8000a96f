"""What the embedded store's search finds, in which order, and what it shows of it."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.plugin.store.sqlite_search import search

MODELS = {
    "gpt": {
        "name": "GPT mini",
        "model_version": "1",
        "created_time": 30,
        "is_hidden": False,
        "description": "Fast one",
    },
    "titan": {"name": "Titan", "model_version": "2", "created_time": 10, "user": {"name": "ann"}},
    "claude": {
        "name": "claude mini",
        "model_version": "10",
        "created_time": 20,
        "rate_limiter": {"unit": "DAYS", "limit": "5"},
        "tags": ["a b", "c"],
        "nothing": None,
    },
}


def run(body: dict[str, Any], index: Index = Index.MODEL) -> dict[str, Any]:
    documents = [Document(id, source, 1, number, 1) for number, (id, source) in enumerate(MODELS.items())]
    return search(index, "models", documents, body)


def found(query: Any, **body: Any) -> list[str]:
    return [hit["_id"] for hit in run({"query": query, **body})["hits"]["hits"]]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({"match_all": {}}, ["gpt", "titan", "claude"]),
        ({"match_all": {"boost": 2}}, ["gpt", "titan", "claude"]),
        ({"term": {"name": "mini"}}, ["gpt", "claude"]),
        ({"term": {"name": "Mini"}}, []),
        ({"term": {"name": {"value": "titan", "boost": 1}}}, ["titan"]),
        ({"term": {"name.keyword": "GPT mini"}}, ["gpt"]),
        ({"term": {"name.keyword": "gpt mini"}}, []),
        ({"term": {"description.keyword": "Fast one"}}, []),
        ({"term": {"model_version": 1}}, ["gpt"]),
        ({"term": {"created_time": "10"}}, ["titan"]),
        ({"term": {"created_time": 10.0}}, ["titan"]),
        ({"term": {"is_hidden": "false"}}, ["gpt"]),
        ({"term": {"is_hidden": False}}, ["gpt"]),
        ({"term": {"rate_limiter": "DAYS"}}, ["claude"]),
        ({"term": {"rate_limiter.limit": 5}}, ["claude"]),
        ({"term": {"tags": "b"}}, ["claude"]),
        ({"term": {"tags.keyword": "a b"}}, ["claude"]),
        ({"term": {"user.name": "ann"}}, []),
        ({"term": {"_id": "titan"}}, ["titan"]),
        ({"terms": {"model_version": ["1", "2"], "boost": 1}}, ["gpt", "titan"]),
        ({"terms": {"model_version": []}}, []),
        ({"match": {"name": "mini TITAN"}}, ["gpt", "titan", "claude"]),
        ({"match": {"name": {"query": "GPT Mini", "operator": "AND"}}}, ["gpt"]),
        ({"match": {"name": "--"}}, []),
        ({"match": {"created_time": 10}}, ["titan"]),
        ({"ids": {"values": ["claude", "gpt", "gone"]}}, ["gpt", "claude"]),
        ({"ids": {"values": "titan"}}, ["titan"]),
        ({"ids": {}}, []),
        ({"exists": {"field": "description"}}, ["gpt"]),
        ({"exists": {"field": "nothing"}}, []),
        ({"exists": {"field": "user"}}, []),
        ({"bool": {}}, ["gpt", "titan", "claude"]),
        ({"bool": {"must": {"term": {"name": "mini"}}}}, ["gpt", "claude"]),
        ({"bool": {"must": [{"term": {"name": "mini"}}, {"ids": {"values": ["gpt"]}}]}}, ["gpt"]),
        ({"bool": {"filter": [{"term": {"name": "mini"}}], "must_not": [{"term": {"name": "gpt"}}]}}, ["claude"]),
        ({"bool": {"should": [{"term": {"name": "gpt"}}, {"term": {"name": "titan"}}]}}, ["gpt", "titan"]),
        ({"bool": {"must": [{"match_all": {}}], "should": [{"term": {"name": "gpt"}}]}}, ["gpt", "titan", "claude"]),
        (
            {"bool": {"should": [{"term": {"name": "mini"}}, {"term": {"name": "gpt"}}], "minimum_should_match": 2}},
            ["gpt"],
        ),
        (
            {"bool": {"filter": {"match_all": {}}, "should": {"term": {"name": "gpt"}}, "minimum_should_match": "1"}},
            ["gpt"],
        ),
    ],
)
def test_a_query_finds_what_opensearch_would(query: Any, ids: list[str]) -> None:
    assert found(query) == ids


@pytest.mark.parametrize(
    ("sort", "ids"),
    [
        ("created_time", ["titan", "claude", "gpt"]),
        ([{"created_time": "desc"}], ["gpt", "claude", "titan"]),
        ([{"created_time": {"order": "DESC", "unmapped_type": "long"}}], ["gpt", "claude", "titan"]),
        (["name.keyword"], ["gpt", "titan", "claude"]),
        ([{"name.keyword": "desc"}], ["claude", "titan", "gpt"]),
        (["model_version"], ["gpt", "claude", "titan"]),
        (["rate_limiter.unit"], ["claude", "gpt", "titan"]),
        ([{"rate_limiter.unit": "desc"}], ["claude", "gpt", "titan"]),
        ([{"rate_limiter.unit": "asc"}, {"created_time": "asc"}], ["claude", "titan", "gpt"]),
        ("_doc", ["gpt", "titan", "claude"]),
        ([{"_doc": "desc"}], ["claude", "titan", "gpt"]),
        (["_score"], ["gpt", "titan", "claude"]),
        ([{"_score": "desc"}], ["gpt", "titan", "claude"]),
    ],
)
def test_hits_are_sorted_with_those_without_the_field_last(sort: Any, ids: list[str]) -> None:
    assert found({"match_all": {}}, sort=sort) == ids


def test_a_text_field_cannot_be_sorted_by() -> None:
    with pytest.raises(InvalidRequest, match=r"sort by \[name\.keyword\] instead of \[name\]"):
        run({"sort": "name"})


def test_a_page_is_cut_from_all_hits_and_the_total_counts_them_all() -> None:
    response = run({"from": 1, "size": 1})
    assert [hit["_id"] for hit in response["hits"]["hits"]] == ["titan"]
    assert response["hits"]["total"] == {"value": 3, "relation": "eq"}
    assert run({"size": 0})["hits"]["hits"] == []
    assert run({"from": 9_000, "size": 1_000})["hits"]["hits"] == []


def test_ten_hits_are_shown_if_no_size_is_given() -> None:
    documents = [Document(str(number), {}, 1, number, 1) for number in range(12)]
    response = search(Index.MODEL, "models", documents, {})
    assert (len(response["hits"]["hits"]), response["hits"]["total"]["value"]) == (10, 12)


def test_a_response_has_opensearchs_form() -> None:
    response = run({"query": {"ids": {"values": ["titan"]}}, "version": True, "track_total_hits": True})
    assert {**response, "hits": None} == {
        "took": 0,
        "timed_out": False,
        "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
        "hits": None,
    }
    assert response["hits"]["max_score"] == 1.0
    [hit] = response["hits"]["hits"]
    assert hit == {
        "_index": "models",
        "_id": "titan",
        "_version": 1,
        "_seq_no": 1,
        "_primary_term": 1,
        "_score": 1.0,
        "_source": MODELS["titan"],
    }


def test_there_is_no_score_for_sorted_hits_nor_without_hits() -> None:
    by_time = run({"sort": "created_time"})
    assert (by_time["hits"]["max_score"], by_time["hits"]["hits"][0]["_score"]) == (None, None)
    assert run({"query": {"ids": {"values": []}}})["hits"]["max_score"] is None


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (
            True,
            {"name": "x", "user": {"name": "ann", "roles": ["a"]}, "actions": [{"url": "u", "headers": {"k": "v"}}]},
        ),
        ("name", {"name": "x"}),
        (["user"], {"user": {"name": "ann", "roles": ["a"]}}),
        (["user.name"], {"user": {"name": "ann"}}),
        (["user.*s"], {"user": {"roles": ["a"]}}),
        (["*.url"], {"actions": [{"url": "u"}]}),
        (["gone"], {}),
        ({"includes": ["user", "name"], "excludes": ["user.roles"]}, {"name": "x", "user": {"name": "ann"}}),
        ({"excludes": ["actions.headers", "user"]}, {"name": "x", "actions": [{"url": "u"}]}),
        ({"excludes": "*"}, {}),
    ],
)
def test_source_shows_the_fields_that_are_included_and_not_excluded(source: Any, shown: Any) -> None:
    document = {"name": "x", "user": {"name": "ann", "roles": ["a"]}, "actions": [{"url": "u", "headers": {"k": "v"}}]}
    response = search(Index.CONNECTOR, "c", [Document("c", document, 1, 0, 1)], {"_source": source})
    assert response["hits"]["hits"][0]["_source"] == shown


def test_without_source_there_is_none() -> None:
    assert "_source" not in run({"_source": False})["hits"]["hits"][0]
