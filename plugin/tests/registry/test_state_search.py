"""A search by `model_state` goes by the state that is shown, in bounded work."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.registry import Registry, state_search
from opensearch_ml_stream.plugin.registry.state_search import MAX_QUERIES, STATES, ShownState
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.registry.registry_setup import StoreInCluster, add_model, closing, registry_on, stored

DEPLOYED = {"term": {"model_state": "DEPLOYED"}}


@pytest.fixture
async def registry() -> AsyncIterator[Registry]:
    """Models `here`, deployed by the sidecar, `there`, deployed by ML Commons, and `idle`."""
    async with closing(StoreInCluster(":memory:")) as store:
        registry = registry_on(store)
        for name in ("here", "idle", "there"):
            model_id = await add_model(registry, name=name)
            if name == "here":
                await registry.models.deploy(ANYONE, model_id, {})
            if name == "there":
                document = await stored(store, Index.MODEL, model_id)
                await store.put(Index.MODEL, model_id, {**document.source, "model_state": "DEPLOYED"})
        yield registry


async def names(registry: Registry, body: dict[str, Any]) -> list[str]:
    response = await registry.models.search(ANYONE, {**body, "sort": [{"name.keyword": "asc"}]})
    found = [hit["_source"]["name"] for hit in response["hits"]["hits"]]
    assert response["hits"]["total"]["value"] == len(found)
    return found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (DEPLOYED, ["here", "there"]),
        ({"terms": {"model_state": ["REGISTERED", "UNDEPLOYED"]}}, ["idle"]),
        ({"match": {"model_state": "REGISTERED"}}, ["idle"]),
        ({"bool": {"must_not": [DEPLOYED]}}, ["idle"]),
        ({"bool": {"must": DEPLOYED, "filter": {"term": {"name.keyword": "here"}}}}, ["here"]),
        ({"bool": {"should": [DEPLOYED, {"term": {"name.keyword": "idle"}}], "minimum_should_match": 1}},
         ["here", "idle", "there"]),
        ({"exists": {"field": "model_state"}}, ["here", "idle", "there"]),
        ({"term": {"name.keyword": "model_state"}}, []),
    ],
)  # fmt: skip
async def test_a_query_finds_the_state_that_get_shows(
    registry: Registry, query: dict[str, Any], found: list[str]
) -> None:
    assert await names(registry, {"query": query}) == found


async def test_a_body_may_hold_numbers_as_a_request_writes_them(registry: Registry) -> None:
    written = b'{"query":{"bool":{"must":[{"term":{"model_state":"DEPLOYED"}}],"boost":1.10}},"from":0}'
    body = dict(jsontext.load_object(written))
    assert await names(registry, body) == ["here", "there"]


async def test_a_connector_or_task_is_searched_as_it_is_stored(registry: Registry) -> None:
    tasks = await registry.tasks.search(ANYONE, {"query": {"term": {"task_type": "DEPLOY_MODEL"}}})
    assert tasks["hits"]["total"]["value"] == 1


@pytest.mark.parametrize(
    "body",
    [
        {"query": {"bool": {"should": [DEPLOYED] * (MAX_QUERIES + 1)}}},
        {"collapse": {"field": "model_state"}},
        {"aggs": {"n": {"cardinality": {"field": "model_state"}}}},
        {"aggs": {"n": {"terms": {"field": "model_state", "min_doc_count": 0}}}},
        {"query": {"multi_match": {"query": "x", "fields": ["name", "model_state^2"]}}},
        {"sort": ["model_state", "_score"]},
        {"sort": ["model_state"], "min_score": 1},
        {"fields": ["model_state"]},
        {"highlight": {"fields": {"model_state": {}}}},
        {"query": {"dis_max": {"queries": [DEPLOYED]}}},
        {"query": {"bool": {"must": {"boosting": {"positive": DEPLOYED, "negative": {}, "negative_boost": 0.5}}}}},
        {"query": {"function_score": {"query": DEPLOYED}}},
        {"query": {"simple_query_string": {"query": "x", "fields": ["name", "model_state"]}}},
        {"aggs": {"n": {"filters": {"filters": [DEPLOYED]}}}},
        {"aggs": {"n": {"composite": {"sources": [{"s": {"terms": {"field": "model_state"}}}]}}}},
        {"aggs": {"n": {"top_hits": {"sort": ["model_state"]}}}},
    ],
)
async def test_what_would_be_wrong_or_too_much_is_refused(registry: Registry, body: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="model_state"):
        await registry.models.search(ANYONE, body)


def test_the_ids_in_one_search_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_search, "MAX_IDS", 5)
    state = ShownState(["a", "b"])
    state.is_state("DEPLOYED")
    state.is_state("UNDEPLOYED")
    with pytest.raises(InvalidRequest, match="too often in one search"):
        state.is_state("REGISTERED")


def test_terms_over_the_state_are_filters_over_the_shown_one_and_look_like_terms_again() -> None:
    body = {"aggs": {"s": {"terms": {"field": "model_state", "size": 2}, "aggs": {"n": {"max": {"field": "x"}}}}}}
    asked = state_search.translate_aggregation(body["aggs"]["s"], ShownState(["m"]))
    assert asked["aggs"] == {"n": {"max": {"field": "x"}}} and "terms" not in asked
    assert list(asked["filters"]["filters"]) == list(STATES)
    assert asked["filters"]["filters"]["REGISTERED"] == {
        "bool": {"must": [{"term": {"model_state": "REGISTERED"}}], "must_not": [{"ids": {"values": ["m"]}}]}
    }
    counts = {"DEPLOYED": 1, "UNDEPLOYED": 3, "REGISTERED": 3, "TRAINED": 0}
    buckets = {state: {"doc_count": count, "n": {"value": 1}} for state, count in counts.items()}
    response: dict[str, Any] = {"aggregations": {"s": {"buckets": buckets}}}
    state_search.restore_aggregations(body, response)
    assert response["aggregations"]["s"] == {
        "doc_count_error_upper_bound": 0,
        "sum_other_doc_count": 1,
        "buckets": [{"key": state, "doc_count": 3, "n": {"value": 1}} for state in ("REGISTERED", "UNDEPLOYED")],
    }


def test_terms_below_other_buckets_are_restored_in_each_of_them() -> None:
    states = {"states": {"terms": {"field": "model_state"}}}
    body = {"aggregations": {"groups": {"terms": {"field": "model_group_id"}, "aggs": states}}}
    inner = {"states": {"buckets": {"DEPLOYED": {"doc_count": 1}}}}
    response: dict[str, Any] = {"aggregations": {"groups": {"buckets": [{"key": "g", "doc_count": 1, **inner}]}}}
    state_search.restore_aggregations(body, response)
    [bucket] = response["aggregations"]["groups"]["buckets"]
    assert bucket["states"]["buckets"] == [{"key": "DEPLOYED", "doc_count": 1}]


@pytest.mark.parametrize(
    ("order", "first"),
    [("asc", "DEPLOYED"), ({"order": "desc"}, "UPLOADING"), ({}, "DEPLOYED"), ({"order": "asc"}, "DEPLOYED")],
)
def test_a_sort_by_state_is_one_by_score_with_the_first_state_highest(order: Any, first: str) -> None:
    body = {"sort": [{"name.keyword": "asc", "model_state": order}], "search_after": ["n", first]}
    asked = state_search.translate_sort(body, ShownState(["m"]))
    assert asked["sort"] == [{"name.keyword": "asc"}, {"_score": {"order": "desc"}}]
    assert asked["search_after"] == ["n", len(STATES)]
    boosts = {
        rank["constant_score"]["boost"]: rank["constant_score"]["filter"] for rank in asked["query"]["bool"]["should"]
    }
    assert first in str(boosts[len(STATES)]) and len(boosts) == len(STATES)
    hit = {"_score": 15.0, "sort": ["n", float(len(STATES))]}
    without_state = {"_score": 0.0, "sort": ["o", 0.0]}
    response: dict[str, Any] = {"hits": {"max_score": 15.0, "hits": [hit, without_state]}}
    state_search.restore_sort(body, response)
    assert (hit["sort"], hit["_score"], response["hits"]["max_score"]) == (["n", first], None, None)
    assert without_state["sort"] == ["o", None]


def test_another_sort_is_left_as_it_is() -> None:
    body = {"sort": ["name.keyword"], "query": DEPLOYED}
    assert state_search.translate_sort(body, ShownState([])) is body
    response: dict[str, Any] = {"hits": {"max_score": 1.0, "hits": []}}
    state_search.restore_sort(body, response)
    assert response["hits"]["max_score"] == 1.0
