"""What a caller finds, on every store: the queries that leave out the rest are the store's to understand."""

from collections.abc import Mapping
from typing import Any

import pytest
from integration_tests.management.management_server import open_test_registry

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.security.access_control import owner_of
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller

ANN, BOB, EVE = Caller("ann", frozenset({"team-a"})), Caller("Bob B."), Caller("eve")
ROOT = Caller("root", is_admin=True)
ACCESS: Mapping[str, Mapping[str, Any]] = {
    "public": {"access": "public", "owner": owner_of(BOB)},
    "private": {"access": "private", "owner": owner_of(BOB)},
    "restricted": {"access": "restricted", "backend_roles": ["team-a", "x"], "owner": owner_of(BOB)},
    "unknown": {"access": "other", "backend_roles": ["team-a"], "owner": owner_of(BOB)},
    "ownerless": {},
}
VISIBLE = {
    "ann": {"public", "restricted", "ownerless"},
    "Bob B.": {"public", "private", "ownerless"},
    "eve": {"public", "ownerless"},
    "root": set(ACCESS),
}


CONTROLLED = Settings(connector_access_control_enabled=True, model_access_control_enabled=True)


def ids(response: Mapping[str, Any]) -> set[str]:
    assert response["hits"]["total"]["value"] == len(response["hits"]["hits"])
    return {hit["_id"] for hit in response["hits"]["hits"]}


async def test_a_caller_finds_what_they_may_access(store: Store) -> None:
    for name, access in ACCESS.items():
        await store.create(Index.CONNECTOR, {"name": name, **access}, name)
        await store.create(Index.MODEL_GROUP, {"name": name, **access}, name)
        model = {"name": name, "model_group_id": name, "algorithm": "REMOTE", "model_state": "REGISTERED"}
        await store.create(Index.MODEL, model, name)
        await store.create(Index.TASK, {"model_id": name, "state": "COMPLETED"}, name)
    registry = open_test_registry(store, CONTROLLED)
    by_state = {"aggs": {"states": {"terms": {"field": "model_state"}}}}
    for caller in (ANN, BOB, EVE, ROOT):
        visible = VISIBLE[caller.name]
        assert ids(await registry.connectors.search(caller, {})) == visible
        assert ids(await registry.model_groups.search(caller, {})) == visible
        assert ids(await registry.tasks.search(caller, {})) == visible
        models = await registry.models.search(caller, by_state)
        assert ids(models) == visible
        assert [bucket["doc_count"] for bucket in models["aggregations"]["states"]["buckets"]] == [len(visible)]


async def test_no_aggregation_names_what_is_not_visible(store: Store) -> None:
    for name, access in ACCESS.items():
        await store.create(Index.MODEL_GROUP, {"name": name, **access}, name)
    registry = open_test_registry(store, CONTROLLED)
    for options in ({}, {"min_doc_count": 1}, {"min_doc_count": 0}, {"min_doc_count": "0"}):
        body = {"size": 0, "aggs": {"names": {"terms": {"field": "name.keyword", **options}}}}
        try:
            found = await registry.model_groups.search(EVE, body)
        except InvalidRequest:
            continue
        assert {bucket["key"] for bucket in found["aggregations"]["names"]["buckets"]} == VISIBLE["eve"]


@pytest.mark.parametrize("name", ["a", "A", "a-b", "a.b:c/d"])
async def test_a_tenant_finds_its_own_alone(store: Store, name: str) -> None:
    tenants = ("a", "A", "a-b", "a.b:c/d", "b")
    for index in (Index.CONNECTOR, Index.MODEL_GROUP, Index.MODEL, Index.TASK):
        for number, tenant in enumerate(tenants):
            await store.create(index, {"name": "n", "tenant_id": tenant}, str(number))
        await store.create(index, {"name": "n"}, "none")
    registry, caller, own = (
        open_test_registry(store, CONTROLLED),
        Caller("root", is_admin=True, tenant_id=name),
        tenants.index(name),
    )
    for service in (registry.connectors, registry.model_groups, registry.models, registry.tasks):
        assert ids(await service.search(caller, {"query": {"match": {"name": "n"}}})) == {str(own)}
