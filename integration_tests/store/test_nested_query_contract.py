"""The contract of every store for nested queries: each nested object is looked at by itself."""

from collections.abc import Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store import Index, Store

MODELS: Mapping[str, Mapping[str, Any]] = {
    "gpt": {"name": "gpt", "model_state": "REGISTERED", "user": {"name": "ann", "roles": ["writer"]}},
    "claude": {
        "name": "claude",
        "model_state": "DEPLOYED",
        "user": [{"name": "Bob", "roles": ["reader"]}, None, {"name": "ann", "roles": ["admin"]}],
    },
    "titan": {"name": "titan", "is_hidden": True, "user": {}},
    "free": {"name": "free", "user": []},
}


def of_user(query: object, **options: object) -> dict[str, Any]:
    return {"nested": {"path": "user", "query": query, **options}}


def without(query: object) -> dict[str, Any]:
    return {"bool": {"must_not": [query]}}


ANN, ADMIN = {"term": {"user.name.keyword": "ann"}}, {"term": {"user.roles.keyword": "admin"}}
BOB = {"term": {"user.name": "bob"}}

NESTED: list[tuple[object, set[str]]] = [
    (of_user({"match_all": {}}), {"gpt", "claude", "titan"}),
    (of_user({"exists": {"field": "user"}}), {"gpt", "claude"}),
    (of_user({"exists": {"field": "user.roles"}}), {"gpt", "claude"}),
    (without(of_user({"exists": {"field": "user"}})), {"titan", "free"}),
    (without(of_user({"match_all": {}})), {"free"}),
    ({"exists": {"field": "user"}}, set()),
    (of_user(ANN), {"gpt", "claude"}),
    (of_user(BOB), {"claude"}),
    (of_user({"bool": {"must": [ANN, ADMIN]}}), {"claude"}),
    (of_user({"bool": {"must": [BOB, ADMIN]}}), set()),
    ({"bool": {"must": [of_user(BOB), of_user(ADMIN)]}}, {"claude"}),
    (of_user(without(ANN)), {"claude", "titan"}),
    (without(of_user(ANN)), {"titan", "free"}),
    (without(of_user(without(ANN))), {"gpt", "free"}),
    (of_user({"match": {"user.name": "ANN bob"}}), {"gpt", "claude"}),
    (of_user({"terms": {"user.roles.keyword": ["admin", "none"]}}, score_mode="max"), {"claude"}),
    (of_user({"prefix": {"user.name.keyword": "B"}}, boost=2), {"claude"}),
    (of_user({"query_string": {"query": "writer OR reader", "fields": ["user.roles"]}}), {"gpt", "claude"}),
    (of_user({"term": {"name.keyword": "ann"}}), set()),
    (of_user({"term": {"model_state": "DEPLOYED"}}), set()),
    (of_user(without({"term": {"model_state": "DEPLOYED"}})), {"gpt", "claude", "titan"}),
    (of_user({"exists": {"field": "model_state"}}), set()),
    (of_user({"ids": {"values": ["gpt"]}}), {"gpt"}),
    (of_user({"term": {"_id": "gpt"}}), {"gpt"}),
    ({"nested": {"path": "owner", "query": {"match_all": {}}, "ignore_unmapped": True}}, set()),
    (without({"nested": {"path": "name", "query": {"match_all": {}}, "ignore_unmapped": "true"}}),
     {"gpt", "claude", "titan", "free"}),
    ({"bool": {"should": [of_user(BOB), {"term": {"is_hidden": True}}]}}, {"claude", "titan"}),
]  # fmt: skip


async def fill(store: Store) -> None:
    for id, source in MODELS.items():
        await store.put(Index.MODEL, id, source)


async def test_nested_queries_find_the_same_documents(store: Store) -> None:
    await fill(store)
    found = []
    for query, _ in NESTED:
        hits = (await store.search(Index.MODEL, {"query": query}))["hits"]["hits"]
        found.append((query, {hit["_id"] for hit in hits}))
    assert [query for query, expected in zip(found, NESTED, strict=True) if query != expected] == []


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"query": {"nested": {"path": "owner", "query": {"match_all": {}}}}}, "failed to find nested object"),
        ({"query": {"nested": {"path": "name", "query": {"match_all": {}}}}}, "failed to find nested object"),
        ({"query": {"nested": {"query": {"match_all": {}}}}}, "path"),
        ({"query": {"nested": {"path": "user"}}}, "query"),
        ({"query": of_user({"match_all": {}}, score_mode="most")}, "No score mode for child query .most."),
        ({"query": of_user({"match_all": {}}, no_such_option=1)}, "no_such_option"),
    ],
)
async def test_a_nested_query_that_is_not_understood_is_the_callers_mistake(
    store: Store, body: Mapping[str, Any], named: str
) -> None:
    await fill(store)
    with pytest.raises(InvalidRequest, match=named):
        await store.search(Index.MODEL, body)
