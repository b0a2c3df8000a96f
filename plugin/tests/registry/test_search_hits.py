"""What leaves by a search over SQLite: the stored sources without what is hidden, then `_source`."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.registry.search import search
from opensearch_ml_stream.plugin.registry.stored_documents import Json
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from tests.registry.registry_setup import closing

SOURCE = {"name": "m", "connector": {"name": "c", "credential": {"k": "cipher"}}, "model_state": "REGISTERED"}
HIDDEN = ("credential", "connector.credential")


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with closing(SQLiteStore(":memory:")) as store:
        await store.create(Index.MODEL, SOURCE, "m")
        yield store


async def shown(store: Store, body: Json, view: Any = None) -> Any:
    """The only hit of a search."""
    response = await search(store, Index.MODEL, body, HIDDEN, None, view)
    [hit] = response["hits"]["hits"]
    return hit


async def test_hidden_fields_never_leave(store: Store) -> None:
    visible = {"name": "m", "connector": {"name": "c"}, "model_state": "REGISTERED"}
    bodies: list[Json] = [{}, {"_source": True}, {"_source": None}, {"_source": []}]
    for body in bodies:
        assert (await shown(store, body))["_source"] == visible
    for source in ("connector.credential", "connector.credential.k", ["*.credential"], {"includes": ["credential"]}):
        assert (await shown(store, {"_source": source}))["_source"] == {}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("name", {"name": "m"}),
        (["connector"], {"connector": {"name": "c"}}),
        ({"excludes": ["connector", "model_state"]}, {"name": "m"}),
        ({"exclude": "connector", "include": "*"}, {"name": "m", "model_state": "REGISTERED"}),
        ({}, {"name": "m", "connector": {"name": "c"}, "model_state": "REGISTERED"}),
    ],
)
async def test_source_chooses_among_the_rest(store: Store, source: Any, expected: Json) -> None:
    assert (await shown(store, {"_source": source}))["_source"] == expected


async def test_without_source_there_is_none(store: Store) -> None:
    hit = await shown(store, {"_source": False})
    assert (hit["_id"], "_source" in hit) == ("m", False)


async def test_a_view_changes_what_is_shown_before_source_is_applied(store: Store) -> None:
    async def deployed(sources: Mapping[str, Json]) -> Mapping[str, Json]:
        return {id: {**source, "model_state": f"{id} DEPLOYED"} for id, source in sources.items()}

    assert (await shown(store, {"_source": "model_state"}, deployed))["_source"] == {"model_state": "m DEPLOYED"}


@pytest.mark.parametrize("kind", ["terms", "filter", "missing"])
@pytest.mark.parametrize("name", ["hits", "buckets", "aggregations", "doc_count"])
async def test_an_aggregation_may_have_any_name(kind: str, name: str) -> None:
    hits = {"hits": [{"_id": "m", "_source": {"name": "m", "connector": {"credential": {"k": "cipher text"}}}}]}
    bucket = {"doc_count": 1, name: {"buckets": [{"key": "m", "doc_count": 1, name: {"hits": hits}}]}}
    results = {name: {"buckets": [bucket]} if kind == "terms" else bucket}
    below = {name: {"terms": {"field": "name.keyword"}, "aggs": {name: {"top_hits": {}}}}}
    options: Json = {"match_all": {}} if kind == "filter" else {"field": "name.keyword"}

    class Answering:
        async def search_for_caller(self, index: Index, body: Json) -> dict[str, Any]:
            return {"hits": {"hits": []}, "aggregations": results}

    await search(Answering(), Index.MODEL, {"aggs": {name: {kind: options, "aggs": below}}}, HIDDEN, None)
    assert hits["hits"][0]["_source"] == {"name": "m", "connector": {}}


async def test_everything_else_of_the_response_is_the_stores(store: Store) -> None:
    body = {"query": {"term": {"name": "m"}}, "size": 1, "sort": "created_time"}
    response = await search(store, Index.MODEL, body, (), None)
    own = await store.search(Index.MODEL, body)
    assert response == own


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"_source": 1}, "search: [_source] must be true, false, or names of fields"),
        ({"_source": ["a", 1]}, "search: [_source] must be true, false, or names of fields"),
        ({"_source": {"includes": 1}}, "search: [_source] must be true, false, or names of fields"),
        ({"_source": {"fields": "a"}}, "search: [_source] with [fields] is not supported here"),
        ({"fields": ["connector"]},
         "search: the field [connector] cannot be used here, it holds a credential; name one in it"),
        ({"runtime_mappings": {}}, "search: [runtime_mappings] is not supported here"),
        ({"query": {"exists": {"field": "x.credential.y"}}},
         "search: the field [x.credential.y] cannot be used, credentials are not searchable"),
        ({"query": {"exists": {}}}, "search: a field's name is missing"),
        ({"query": {"term": {"cred*": 1}}}, "search: name each field in full, not [cred*]"),
        ({"query": {"terms": {"name": {}}}}, "search: [terms] on [name] needs an array of values"),
        ({"query": {"multi_match": {"fields": []}}}, "search: [multi_match] needs its fields, an array of names"),
        ({"query": {"multi_match": {"fields": [1]}}}, "search: a field's name is missing"),
        ({"query": {"more_like_this": {}}}, "search: the query [more_like_this] is not supported here"),
        ({"query": {"bool": {"boosting": 1}}}, "search: [bool] with [boosting] is not supported here"),
        ({"query": {"nested": {"path": "p", "query": 1}}}, "search: [query] must be an object"),
        ({"aggs": {"a": {"nested": {}}}}, "search: the aggregation [nested] is not supported here"),
        ({"aggs": {"a": {"terms": {"field": "n", "order": [{"script": 1}]}}}},
         "search: [script] is not supported here"),
        ({"sort": [{"name": {"nested": {}}}]}, "search: [nested] is not supported here"),
        ({"sort": 1}, "search: [sort] must be an object"),
        ({"collapse": {"field": "n", "inner_hits": {}}}, "search: [collapse] with [inner_hits] is not supported here"),
    ],
)  # fmt: skip
async def test_a_body_that_could_show_more_is_refused_and_says_what(store: Store, body: Json, reason: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        await search(store, Index.MODEL, body, HIDDEN, None)
    assert raised.value.reason == reason


@pytest.mark.parametrize("name", ["aggs", "aggregations"])
async def test_hits_of_aggregations_are_shown_as_all_others(store: Store, name: str) -> None:
    async def deployed(sources: Mapping[str, Json]) -> Mapping[str, Json]:
        return {id: {**source, "model_state": "DEPLOYED"} for id, source in sources.items()}

    def top_hits(*fields: str) -> dict[str, Any]:
        return {"top_hits": {"_source": list(fields)} if fields else {}}

    by_name: dict[str, Any] = {
        "terms": {"field": "name.keyword"},
        name: {"few": top_hits("name", "connector.credential")},
    }
    body = {"size": 0, name: {"names": {**by_name, name: {**by_name[name], "deep": by_name}}, "all": top_hits()}}
    response = await search(store, Index.MODEL, body, HIDDEN, None, deployed)
    [all_hit] = response["aggregations"]["all"]["hits"]["hits"]
    assert all_hit["_source"] == {"name": "m", "connector": {"name": "c"}, "model_state": "DEPLOYED"}
    [bucket] = response["aggregations"]["names"]["buckets"]
    [few_hit] = bucket["few"]["hits"]["hits"]
    [deep_bucket] = bucket["deep"]["buckets"]
    [deep_hit] = deep_bucket["few"]["hits"]["hits"]
    assert few_hit["_source"] == deep_hit["_source"] == {"name": "m"}
    assert "cipher" not in str(response)


DASHBOARDS_SEARCHES: list[Json] = [
    {  # the list of models: server/services/model_service.ts of ml-commons-dashboards
        "query": {"bool": {
            "must": [
                {"terms": {"model_state": ["DEPLOYED", "REGISTERED"]}},
                {"bool": {"should": [
                    {"wildcard": {"name.keyword": {"value": "*M*", "case_insensitive": True}}},
                    {"terms": {"_id": ["M"]}},
                ]}},
            ],
            "must_not": {"exists": {"field": "chunk_number"}},
        }},
        "from": 0, "size": 50, "sort": [{"name.keyword": "asc"}, {"_id": "desc"}],
    },
    {  # the names of inline connectors: connector_service.ts
        "size": 0, "aggs": {"unique_connector_names": {"terms": {"field": "connector.name.keyword", "size": 10000}}},
    },
    {  # models by name with their newest version: model_aggregate_service.ts
        "size": 0,
        "query": {"bool": {"must": [{"match": {"name": "m"}}], "must_not": {"exists": {"field": "chunk_number"}}}},
        "aggs": {"models": {
            "terms": {"field": "name.keyword", "size": 10000},
            "aggs": {"latest_version_hits": {"top_hits": {
                "sort": [{"created_time": {"order": "desc"}}], "size": 1,
                "_source": ["model_version", "model_state", "description", "created_time"],
            }}},
        }},
    },
]  # fmt: skip


@pytest.mark.parametrize("body", DASHBOARDS_SEARCHES, ids=["list", "connectors", "versions"])
async def test_the_searches_of_opensearch_dashboards_find_the_model(store: Store, body: Json) -> None:
    response = await search(store, Index.MODEL, body, HIDDEN, None)
    assert response["hits"]["total"]["value"] == 1
    if "aggs" in body:
        [result] = response["aggregations"].values()
        assert [bucket["doc_count"] for bucket in result["buckets"]] == [1]
