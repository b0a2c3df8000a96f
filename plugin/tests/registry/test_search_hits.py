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
    response = await search(store, Index.MODEL, body, HIDDEN, view)
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


async def test_everything_else_of_the_response_is_the_stores(store: Store) -> None:
    body = {"query": {"term": {"name": "m"}}, "size": 1, "sort": "created_time"}
    response = await search(store, Index.MODEL, body, ())
    own = await store.search(Index.MODEL, body)
    assert response == own


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"_source": 1}, "search: [_source] must be true, false, or names of fields"),
        ({"_source": ["a", 1]}, "search: [_source] must be true, false, or names of fields"),
        ({"_source": {"includes": 1}}, "search: [_source] must be true, false, or names of fields"),
        ({"_source": {"fields": "a"}}, "search: [_source] with [fields] is not supported here"),
        ({"fields": ["credential"]}, "search: [fields] is not supported here"),
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
        await search(store, Index.MODEL, body, HIDDEN)
    assert raised.value.reason == reason
