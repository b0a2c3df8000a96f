"""A search by `model_state` finds what GET shows, in hits, totals, aggregations, order and pages."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from integration_tests.interop.ml_commons.sides import Side

pytestmark = pytest.mark.ml_commons

Models = dict[str, str]


@pytest.fixture(scope="module")
def group(sidecar: Side) -> str:
    """A model group for this module's models, as others' lie in the same index."""
    return str(sidecar.ask("POST", "/model_groups/_register", {"name": f"states-{uuid4()}"})["model_group_id"])


@pytest.fixture(scope="module")
def models(sidecar: Side, ml_commons: Side, group: str) -> Iterator[Models]:
    """Ids by what was done: two of each kind, but for the one that ML Commons has deployed."""
    connector = {
        "name": "c",
        "version": 1,
        "protocol": "http",
        "credential": {"key": "sk-1"},
        "actions": [{"action_type": "predict", "method": "POST", "url": "http://127.0.0.1:1/", "request_body": "{}"}],
    }
    names = ("here-1", "here-2", "registered-1", "registered-2", "undeployed-1", "undeployed-2", "there")
    made = {name: sidecar.create_model(connector, name=name, model_group_id=group) for name in names}
    for name in ("here-1", "here-2", "undeployed-1", "undeployed-2"):
        sidecar.deploy(made[name])
    for name in ("undeployed-1", "undeployed-2"):
        sidecar.ask("POST", f"/models/{made[name]}/_undeploy")
    ml_commons.deploy(made["there"])
    yield made


def of_group(group: str, *queries: dict[str, Any]) -> dict[str, Any]:
    return {"bool": {"filter": [{"term": {"model_group_id": group}}, *queries]}}


def names(response: dict[str, Any]) -> list[str]:
    return [hit["_source"]["name"] for hit in response["hits"]["hits"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"term": {"model_state": "DEPLOYED"}}, ["here-1", "here-2", "there"]),
        ({"term": {"model_state": {"value": "deployed", "case_insensitive": True}}}, ["here-1", "here-2", "there"]),
        ({"terms": {"model_state": ["DEPLOYED", "UNDEPLOYED"]}},
         ["here-1", "here-2", "there", "undeployed-1", "undeployed-2"]),
        ({"match": {"model_state": "REGISTERED"}}, ["registered-1", "registered-2"]),
        ({"prefix": {"model_state": "DEPLOY"}}, ["here-1", "here-2", "there"]),
        ({"wildcard": {"model_state": "*REGISTERED"}}, ["registered-1", "registered-2"]),
        ({"query_string": {"query": "DEPLOYED", "default_field": "model_state"}}, ["here-1", "here-2", "there"]),
        ({"bool": {"must_not": {"term": {"model_state": "DEPLOYED"}}}},
         ["registered-1", "registered-2", "undeployed-1", "undeployed-2"]),
        ({"bool": {"should": [{"term": {"model_state": "UNDEPLOYED"}}, {"term": {"name.keyword": "here-1"}}]}},
         ["here-1", "undeployed-1", "undeployed-2"]),
        ({"constant_score": {"filter": {"term": {"model_state": "UNDEPLOYED"}}}}, ["undeployed-1", "undeployed-2"]),
        ({"exists": {"field": "model_state"}},
         ["here-1", "here-2", "registered-1", "registered-2", "there", "undeployed-1", "undeployed-2"]),
    ],
)  # fmt: skip
def test_a_search_finds_the_state_that_is_shown(
    sidecar: Side, models: Models, group: str, query: dict[str, Any], found: list[str]
) -> None:
    response = sidecar.find(query=of_group(group, query), sort=[{"name.keyword": "asc"}], size=20)
    assert names(response) == found
    assert response["hits"]["total"]["value"] == len(found)
    assert all(sidecar.state(hit["_id"]) == hit["_source"]["model_state"] for hit in response["hits"]["hits"])


def test_dashboards_list_of_deployed_models_has_them_page_by_page(sidecar: Side, models: Models, group: str) -> None:
    query = {
        "bool": {
            "must": [{"terms": {"model_state": ["DEPLOYED", "PARTIALLY_DEPLOYED"]}}, of_group(group)],
            "must_not": {"exists": {"field": "chunk_number"}},
        }
    }
    sort = [{"name.keyword": "asc"}]
    pages = [sidecar.find(query=query, sort=sort, size=2, **{"from": start}) for start in (0, 2)]
    assert [names(page) for page in pages] == [["here-1", "here-2"], ["there"]]
    assert [page["hits"]["total"]["value"] for page in pages] == [3, 3]


def test_a_post_filter_and_a_filter_aggregation_go_by_the_shown_state(
    sidecar: Side, models: Models, group: str
) -> None:
    deployed = {"term": {"model_state": "DEPLOYED"}}
    response = sidecar.find(query=of_group(group), post_filter=deployed, aggs={"n": {"filter": deployed}})
    assert sorted(names(response)) == ["here-1", "here-2", "there"]
    assert response["aggregations"]["n"]["doc_count"] == 3


def test_models_are_counted_by_the_shown_state(sidecar: Side, models: Models, group: str) -> None:
    newest = {"newest": {"top_hits": {"size": 1, "sort": [{"name.keyword": "desc"}], "_source": ["name"]}}}
    aggs = {"states": {"terms": {"field": "model_state"}, "aggs": newest}}
    result = sidecar.find(query=of_group(group), size=0, aggs=aggs)["aggregations"]["states"]
    assert [(bucket["key"], bucket["doc_count"]) for bucket in result["buckets"]] == [
        ("DEPLOYED", 3),
        ("REGISTERED", 2),
        ("UNDEPLOYED", 2),
    ]
    newest_names = [bucket["newest"]["hits"]["hits"][0]["_source"]["name"] for bucket in result["buckets"]]
    assert newest_names == ["there", "registered-2", "undeployed-2"]
    assert (result["sum_other_doc_count"], result["doc_count_error_upper_bound"]) == (0, 0)


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_models_are_sorted_by_the_shown_state_across_pages(
    sidecar: Side, models: Models, group: str, order: str
) -> None:
    sort = [{"model_state": order}, {"name.keyword": {"order": "asc"}}]
    first = sidecar.find(query=of_group(group), sort=sort, size=4)
    after = first["hits"]["hits"][-1]["sort"]
    second = sidecar.find(query=of_group(group), sort=sort, size=4, search_after=after)
    states = [["here-1", "here-2", "there"], ["registered-1", "registered-2"], ["undeployed-1", "undeployed-2"]]
    in_order = states if order == "asc" else reversed(states)
    assert names(first) + names(second) == [name for names_of_state in in_order for name in names_of_state]
    assert after[0] == "REGISTERED" and first["hits"]["hits"][0]["_score"] is None


@pytest.mark.parametrize(
    "body",
    [
        {"collapse": {"field": "model_state"}},
        {"aggs": {"n": {"cardinality": {"field": "model_state"}}}},
        {"query": {"multi_match": {"query": "x", "fields": ["name", "model_state"]}}},
        {"query": {"bool": {"should": [{"term": {"model_state": str(n)}} for n in range(101)]}}},
        {"sort": ["model_state", "_score"]},
    ],
)
def test_what_cannot_go_by_the_shown_state_is_refused(sidecar: Side, models: Models, body: dict[str, Any]) -> None:
    response = sidecar.call("POST", "/models/_search", body)
    assert response.status_code == 400 and "model_state" in response.text
