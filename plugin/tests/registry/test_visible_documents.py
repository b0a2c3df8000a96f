"""What a caller finds: of connectors, groups, models and tasks only what they may see, however they ask."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.security.access_control import owner_of
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.registry.registry_setup import StoreInCluster, closing, registry_on

ANN, BOB, EVE = Caller("ann", frozenset({"team-a"})), Caller("bob"), Caller("eve")
ADMIN = Caller("admin", is_admin=True)

MODES: dict[str, dict[str, Any]] = {
    "public": {"access": "public", "owner": owner_of(BOB)},
    "bobs": {"access": "private", "owner": owner_of(BOB)},
    "team": {"access": "restricted", "backend_roles": ["team-a"], "owner": owner_of(BOB)},
    "nobodys": {},
}
EVERYONES = {"public", "nobodys"}
VISIBLE: Mapping[str, set[str]] = {
    "ann": {*EVERYONES, "team"},
    "bob": {*EVERYONES, "bobs"},
    "eve": EVERYONES,
    "admin": set(MODES),
    "": set(MODES),
}
STATES = ("DEPLOYED", "UNDEPLOYED")


class CountingStore(SQLiteStore):
    """Counts the sidecar's own searches, beside those that callers ask for."""

    searches = 0

    async def search(self, index: Index, body: Mapping[str, Any]) -> dict[str, Any]:
        self.searches += 1
        return await super().search(index, body)


async def fill(store: SQLiteStore) -> None:
    """Store a connector, a group, a model and a task of each mode; a model without a group, and of one that is gone."""
    for number, (mode, access) in enumerate(MODES.items()):
        await store.create(Index.CONNECTOR, {"name": f"of {mode}", **access}, mode)
        await store.create(Index.MODEL_GROUP, {"name": f"of {mode}", **access}, f"group-{mode}")
        model = {"name": f"of {mode}", "model_group_id": f"group-{mode}", "algorithm": "REMOTE", "created_time": number}
        await store.create(Index.MODEL, {**model, "model_state": "DEPLOYED"}, mode)
        await store.create(Index.TASK, {"model_id": mode, "state": "COMPLETED"}, mode)
    await store.create(Index.MODEL, {"name": "of everyone", "model_state": "UNDEPLOYED", "created_time": 8}, "free")
    await store.create(Index.MODEL, {"name": "of nobody", "model_group_id": "gone", "created_time": 9}, "lost")
    await store.create(Index.TASK, {"model_id": "deleted", "user": owner_of(EVE)}, "lost")


@pytest.fixture
async def store() -> AsyncIterator[CountingStore]:
    async with closing(CountingStore(":memory:")) as opened:
        await fill(opened)
        yield opened


@pytest.fixture
def registry(store: CountingStore) -> Registry:
    return registry_on(store, connector_access_control_enabled=True, model_access_control_enabled=True)


def ids(response: Mapping[str, Any]) -> list[str]:
    return [hit["_id"] for hit in response["hits"]["hits"]]


def all_models(caller: Caller) -> set[str]:
    return VISIBLE[caller.name] | {"free"} | ({"lost"} if caller.is_admin else set())


CALLERS = pytest.mark.parametrize("caller", [ANN, BOB, EVE, ADMIN, ANYONE], ids=lambda caller: caller.name or "anyone")


@CALLERS
async def test_a_search_finds_what_the_caller_may_see(registry: Registry, caller: Caller) -> None:
    assert set(ids(await registry.connectors.search(caller, {}))) == VISIBLE[caller.name]
    groups = {f"group-{mode}" for mode in VISIBLE[caller.name]}
    assert set(ids(await registry.model_groups.search(caller, {}))) == groups
    assert set(ids(await registry.models.search(caller, {}))) == all_models(caller)


@CALLERS
async def test_tasks_are_found_by_who_sees_their_model(registry: Registry, caller: Caller) -> None:
    of_no_model = {"lost"} if caller.is_admin else set()
    assert set(ids(await registry.tasks.search(caller, {}))) == VISIBLE[caller.name] | of_no_model


@pytest.mark.parametrize(
    "query",
    [
        {"match_all": {}},
        {"ids": {"values": [*MODES, "free", "lost"]}},
        {"query_string": {"query": "of", "fields": ["name"]}},
        {"bool": {"should": [{"match_all": {}}]}},
        {"bool": {"must_not": [{"term": {"name.keyword": "no such name"}}]}},
        {"bool": {"should": [{"match": {"name": "of"}}, {"exists": {"field": "model_group_id"}}]}},
        {"terms": {"model_state": [*STATES]}},
        {"wildcard": {"name.keyword": "of*"}},
    ],
)
async def test_no_query_sees_around_what_is_visible(registry: Registry, query: dict[str, Any]) -> None:
    body = {
        "query": query,
        "track_total_hits": True,
        "aggs": {
            "states": {"terms": {"field": "model_state"}, "aggs": {"hits": {"top_hits": {"size": 9}}}},
            "names": {"terms": {"field": "name.keyword"}},
        },
    }
    found = await registry.models.search(EVE, body)
    visible = {*EVERYONES, "free"}
    assert set(ids(found)) == visible and found["hits"]["total"]["value"] == len(visible)
    states = {bucket["key"]: bucket for bucket in found["aggregations"]["states"]["buckets"]}
    assert {state: bucket["doc_count"] for state, bucket in states.items()} == {"DEPLOYED": 2, "UNDEPLOYED": 1}
    below = {hit["_id"] for bucket in states.values() for hit in bucket["hits"]["hits"]["hits"]}
    assert below == visible
    names = {bucket["key"] for bucket in found["aggregations"]["names"]["buckets"]}
    assert names == {"of public", "of nobodys", "of everyone"}


@pytest.mark.parametrize("minimum", [0, -1, "0", 0.4, None, False])
async def test_no_bucket_without_documents_names_what_is_not_visible(registry: Registry, minimum: object) -> None:
    names: dict[str, Any] = {"terms": {"field": "name.keyword", "min_doc_count": minimum}}
    for aggregations in ({"a": names}, {"b": {"terms": {"field": "model_state"}, "aggregations": {"a": names}}}):
        with pytest.raises(InvalidRequest, match="min_doc_count"):
            await registry.models.search(EVE, {"aggs": aggregations})


async def test_who_sees_everything_may_ask_for_buckets_without_documents(registry: Registry) -> None:
    names = {"terms": {"field": "name.keyword", "min_doc_count": 0}}
    found = await registry.models.search(ADMIN, {"size": 0, "aggs": {"a": names}})
    assert len(found["aggregations"]["a"]["buckets"]) == len(MODES) + 2


async def test_pages_are_of_visible_documents(registry: Registry) -> None:
    body = {"sort": [{"created_time": "desc"}], "size": 2}
    assert ids(await registry.models.search(EVE, body)) == ["free", "nobodys"]
    rest = await registry.models.search(EVE, {**body, "from": 2})
    assert ids(rest) == ["public"] and rest["hits"]["total"]["value"] == 3


async def test_states_that_are_stored_apart_are_searched_among_visible_models() -> None:
    async with closing(StoreInCluster(":memory:")) as store:
        await fill(store)
        await store.create(Index.DEPLOYMENT, {"model_state": "DEPLOYED"}, "free")
        await store.create(Index.DEPLOYMENT, {"model_state": "DEPLOYED"}, "lost")
        registry = registry_on(store, model_access_control_enabled=True)
        for caller in (ANN, EVE, ADMIN):
            deployed = {"query": {"term": {"model_state": "DEPLOYED"}}, "size": 50}
            assert set(ids(await registry.models.search(caller, deployed))) == all_models(caller)


@pytest.mark.parametrize(
    ("caller", "settings"),
    [
        (EVE, {}),
        (ADMIN, {"connector_access_control_enabled": True, "model_access_control_enabled": True}),
        (ANYONE, {"connector_access_control_enabled": True, "model_access_control_enabled": True}),
    ],
)
async def test_whoever_may_see_everything_pays_nothing(
    store: CountingStore, caller: Caller, settings: dict[str, Any]
) -> None:
    registry, before = registry_on(store, None, **settings), store.searches
    assert len(ids(await registry.models.search(caller, {"_source": False}))) == len(MODES) + 2
    assert len(ids(await registry.tasks.search(caller, {}))) == len(MODES) + 1
    assert len(ids(await registry.connectors.search(caller, {}))) == len(MODES)
    assert len(ids(await registry.model_groups.search(caller, {}))) == len(MODES)
    assert store.searches == before


async def test_connectors_and_models_have_a_switch_each(store: CountingStore) -> None:
    registry = registry_on(store, connector_access_control_enabled=True)
    assert set(ids(await registry.connectors.search(EVE, {}))) == EVERYONES
    assert len(ids(await registry.models.search(EVE, {}))) == len(MODES) + 2
    registry = registry_on(store, model_access_control_enabled=True)
    assert set(ids(await registry.models.search(EVE, {}))) == {*EVERYONES, "free"}
    assert len(ids(await registry.connectors.search(EVE, {}))) == len(MODES)


@pytest.mark.parametrize("is_controlled", [True, False])
async def test_a_tenant_finds_its_own_documents(is_controlled: bool) -> None:
    async with closing(SQLiteStore(":memory:")) as store:
        for tenant in ("a", "b"):
            fields = {"name": "of", "tenant_id": tenant, "model_group_id": f"group-{tenant}", "model_id": f"m-{tenant}"}
            await store.create(Index.CONNECTOR, fields, f"c-{tenant}")
            await store.create(Index.MODEL_GROUP, fields, f"group-{tenant}")
            await store.create(Index.MODEL, fields, f"m-{tenant}")
            await store.create(Index.TASK, fields, f"t-{tenant}")
        await fill(store)
        registry = registry_on(
            store, None, connector_access_control_enabled=is_controlled, model_access_control_enabled=is_controlled
        )
        for caller in (Caller("eve", tenant_id="a"), Caller("admin", is_admin=True, tenant_id="a")):
            query = {"query": {"bool": {"should": [{"term": {"tenant_id": "b"}}, {"match_all": {}}]}}}
            assert ids(await registry.connectors.search(caller, query)) == ["c-a"]
            assert ids(await registry.model_groups.search(caller, query)) == ["group-a"]
            assert ids(await registry.models.search(caller, query)) == ["m-a"]
            assert ids(await registry.tasks.search(caller, query)) == ["t-a"]
