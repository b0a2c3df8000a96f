"""Models that ML Commons on the cluster uses too: changed, deleted, and swept up after."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Conflict, Forbidden, Unavailable
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.registry import cleanup, models
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.registry.registry_setup import StoreInCluster, add_model, closing, registry_on, stored


@pytest.fixture
async def store() -> AsyncIterator[StoreInCluster]:
    async with closing(StoreInCluster(":memory:")) as opened:
        yield opened


async def set_state(store: StoreInCluster, model_id: str, state: str, time: int = 1) -> None:
    document = await stored(store, Index.MODEL, model_id)
    source = {**document.source, "model_state": state, "last_deployed_time": time}
    await store.put(Index.MODEL, model_id, source)


async def deployed_there(store: StoreInCluster, **fields: Any) -> str:
    """A model that ML Commons has deployed, and deploys again when it is told to."""
    model_id = await add_model(registry_on(store), **fields)
    await set_state(store, model_id, "DEPLOYED")

    async def deploy(id: str) -> None:
        await set_state(store, id, "DEPLOYED", time=2)

    store.cluster.when_deployed = deploy
    return model_id


@pytest.mark.parametrize(
    "change", [{"is_enabled": False}, {"rate_limiter": {"limit": "1", "unit": "DAYS"}}, {"guardrails": {}}]
)
async def test_a_change_that_ml_commons_holds_in_memory_is_taken_over_by_it(
    store: StoreInCluster, change: dict[str, Any]
) -> None:
    model_id = await deployed_there(store)
    await registry_on(store).models.update(ANYONE, model_id, change)
    assert store.cluster.told == [("undeploy", model_id), ("deploy", model_id)]


async def test_the_same_change_again_is_taken_over_again(store: StoreInCluster) -> None:
    """As the error says that names what to do when ML Commons did not take it over."""
    model_id = await deployed_there(store)
    for time in (1, 3):
        await set_state(store, model_id, "DEPLOYED", time=time)
        await registry_on(store).models.update(ANYONE, model_id, {"is_enabled": False})
    assert len(store.cluster.told) == 4


@pytest.mark.parametrize(("change", "state"), [({"name": "n"}, "DEPLOYED"), ({"is_enabled": False}, "REGISTERED")])
async def test_what_ml_commons_does_not_hold_it_is_not_told(
    store: StoreInCluster, change: dict[str, Any], state: str
) -> None:
    model_id = await add_model(registry_on(store))
    await set_state(store, model_id, state)
    await registry_on(store).models.update(ANYONE, model_id, change)
    assert store.cluster.told == []


async def test_a_change_that_ml_commons_does_not_take_over_is_stored_and_said(store: StoreInCluster) -> None:
    model_id = await deployed_there(store)
    store.cluster.refusal = Forbidden("it needs the permission p")
    with pytest.raises(Unavailable, match=r"changed here, but ML Commons .* send the request again.* the permission p"):
        await registry_on(store).models.update(ANYONE, model_id, {"is_enabled": False})
    assert (await stored(store, Index.MODEL, model_id)).source["is_enabled"] is False


async def test_ml_commons_is_not_waited_for_without_end(store: StoreInCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "DEPLOY_SECONDS", 0.1)
    model_id = await deployed_there(store)
    store.cluster.when_deployed = None
    with pytest.raises(Unavailable, match=r"It has not deployed it in 0\.1 s"):
        await registry_on(store).models.update(ANYONE, model_id, {"is_enabled": False})


def uses(model_id: str) -> dict[str, Any]:
    return {"processors": [{"foreach": {"processor": {"ml_inference": {"model_id": model_id}}}}]}


async def test_a_safe_deletion_names_the_pipelines_and_agents_that_use_the_model(store: StoreInCluster) -> None:
    registry = registry_on(store, safe_delete_model=True)
    model_id = await add_model(registry)
    cluster = store.cluster
    cluster.all_pipelines = {
        "ingest": {"p2": uses(model_id), "p1": uses(model_id), "q": uses("another"), "t": {"description": model_id}},
        "search": {"s": {"response_processors": [{"rerank": {"ml_opensearch": {"model_id": model_id}}}]}},
    }  # fmt: skip
    cluster.agents = ["a"]
    ingest = "2 ingest pipelines are still using this model, please delete or update the pipelines first: [p1, p2]"
    search = "1 search pipelines are still using this model, please delete or update the pipelines first: [s]"
    agents = (
        "1 agents are still using this model, please delete or update the agents first, all visible agents are: [a]"
    )
    for reason, mend in (
        (ingest, lambda: cluster.all_pipelines.pop("ingest")),
        (search, lambda: cluster.all_pipelines.pop("search")),
        (agents, lambda: cluster.agents.clear()),
    ):
        with pytest.raises(Conflict) as raised:
            await registry.models.delete(ANYONE, model_id)
        assert (raised.value.reason, raised.value.type) == (reason, "status_exception")
        mend()
    assert (await registry.models.delete(ANYONE, model_id))["result"] == "deleted"


async def test_nothing_is_looked_for_where_safe_deletions_are_not_asked_for(store: StoreInCluster) -> None:
    registry = registry_on(store)
    model_id = await add_model(registry)
    store.cluster.all_pipelines = {"ingest": {"p": uses(model_id)}}
    assert (await registry.models.delete(ANYONE, model_id))["result"] == "deleted"


async def test_states_of_models_that_are_gone_are_deleted_and_no_others(store: StoreInCluster) -> None:
    registry = registry_on(store)
    kept, gone = await add_model(registry), await add_model(registry)
    for model_id in (kept, gone):
        await registry.models.deploy(ANYONE, model_id, {})
    await store.delete(Index.MODEL, gone)
    assert await cleanup.delete_orphans(store) == 1
    assert await store.get(Index.DEPLOYMENT, gone) is None
    assert await store.get(Index.DEPLOYMENT, kept) is not None
    assert await cleanup.delete_orphans(store) == 0


async def test_the_sweep_goes_on_after_the_store_was_down(
    store: StoreInCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    registry = registry_on(store)
    model_id = await add_model(registry)
    await registry.models.deploy(ANYONE, model_id, {})
    await store.delete(Index.MODEL, model_id)
    search, failures = store.search, iter([Unavailable("down")])

    async def search_after_a_failure(index: Index, body: Any) -> dict[str, Any]:
        if (failure := next(failures, None)) is not None:
            raise failure
        return await search(index, body)

    monkeypatch.setattr(store, "search", search_after_a_failure)
    with caplog.at_level(logging.INFO):
        async with cleanup.deleting_orphans(store, BackgroundTasks(), interval=0.001):
            while len(caplog.messages) < 2:  # noqa: ASYNC110 - a poller
                await asyncio.sleep(0.001)
    assert caplog.messages == [
        "Deployed states and settings of deleted models cannot be removed now: down",
        "Deleted 1 deployed states and settings of models that no longer exist",
    ]
    assert await store.get(Index.DEPLOYMENT, model_id) is None
