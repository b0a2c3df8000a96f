"""Where the deployed state of a model is kept, and when a model is deployed by itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, NotFound
from opensearch_ml_stream.plugin.credentials.master_key import Cipher
from opensearch_ml_stream.plugin.registry import Registry, open_registry
from opensearch_ml_stream.plugin.registry.deployed_states import DeployedStates
from opensearch_ml_stream.plugin.registry.model_deployment import ModelDeployment
from opensearch_ml_stream.plugin.registry.stored_documents import Clock, Json
from opensearch_ml_stream.plugin.registry.tasks import BatchJobs
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.store import Document, Index, Store
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore

CONNECTOR = {
    "name": "c",
    "version": "1",
    "protocol": "http",
    "credential": {"key": "secret"},
    "actions": [{"action_type": "predict", "method": "POST", "url": "https://api.openai.com/v1"}],
}


class StoreBesideMLCommons(SQLiteStore):
    """A store of a cluster on which a real ML Commons runs."""

    async def has_ml_commons(self) -> bool:
        return True


@asynccontextmanager
async def closing(store: SQLiteStore) -> AsyncIterator[Store]:
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def alone() -> AsyncIterator[Store]:
    async with closing(SQLiteStore(":memory:")) as store:
        yield store


@pytest.fixture
async def beside() -> AsyncIterator[Store]:
    async with closing(StoreBesideMLCommons(":memory:")) as store:
        yield store


def registry_over(store: Store, settings: Settings, clock: Clock, batch: BatchJobs | None = None) -> Registry:
    cipher, live = Cipher(store), LiveSettings(settings)
    deployment = ModelDeployment(store, cipher, live, clock, DeployedStates(store, clock))
    return open_registry(store, cipher, live, clock, deployment, batch)


def registry_on(store: Store, **settings: Any) -> Registry:
    ticks = count(1_000_000)
    return registry_over(store, Settings(**settings), lambda: next(ticks))


async def register(registry: Registry, **fields: Any) -> str:
    connector = await registry.connectors.create(CONNECTOR)
    body = {"name": "m", "function_name": "remote", "connector_id": connector["connector_id"], **fields}
    return str((await registry.models.register(body))["model_id"])


async def stored(store: Store, model_id: str) -> Document:
    document = await store.get(Index.MODEL, model_id)
    assert document is not None
    return document


async def states_found(registry: Registry) -> list[str]:
    found = await registry.models.search({})
    return [hit["_source"]["model_state"] for hit in found["hits"]["hits"]]


async def test_alone_the_state_stands_in_the_models_document(alone: Store) -> None:
    registry = registry_on(alone)
    model_id = await register(registry)
    await registry.models.deploy(model_id, {})
    assert (await stored(alone, model_id)).source["model_state"] == "DEPLOYED"
    await registry.models.undeploy(model_id)
    assert (await stored(alone, model_id)).source["model_state"] == "UNDEPLOYED"


async def test_beside_ml_commons_the_models_document_is_left_alone(beside: Store) -> None:
    registry = registry_on(beside)
    model_id = await register(registry)
    before = await stored(beside, model_id)
    await registry.models.deploy(model_id, {})
    shown = await registry.models.get(model_id)
    assert (shown["model_state"], shown["current_worker_node_count"]) == ("DEPLOYED", 1)
    assert await states_found(registry) == ["DEPLOYED"]
    assert await undeploy(registry, model_id) == "undeployed"
    assert await undeploy(registry, model_id) == "not_found"
    assert await states_found(registry) == ["UNDEPLOYED"]
    assert await stored(beside, model_id) == before


async def undeploy(registry: Registry, model_id: str) -> str:
    (node,) = (await registry.models.undeploy(model_id)).values()
    return str(node["stats"][model_id])


async def test_beside_ml_commons_the_same_rules_hold_for_deployed_models(beside: Store) -> None:
    registry = registry_on(beside)
    model_id = await register(registry)
    await registry.models.deploy(model_id, {})
    connector_id = (await stored(beside, model_id)).source["connector_id"]
    with pytest.raises(InvalidRequest, match="1 models are still using this connector, please undeploy"):
        await registry.connectors.update(connector_id, {"name": "x"})
    with pytest.raises(InvalidRequest, match="Model cannot be deleted in deploying or deployed state"):
        await registry.models.delete(model_id)
    await registry.models.undeploy(model_id)
    await registry.connectors.update(connector_id, {"name": "x"})
    await registry.models.delete(model_id)
    assert await beside.get(Index.DEPLOYMENT, model_id) is None


async def test_a_model_that_ml_commons_itself_holds_is_deployed_whatever_our_own_flag_says(beside: Store) -> None:
    registry = registry_on(beside)
    model_id = await register(registry)
    await registry.models.deploy(model_id, {})
    await registry.models.undeploy(model_id)
    document = await stored(beside, model_id)
    await beside.put(Index.MODEL, model_id, {**document.source, "model_state": "DEPLOYED"})
    assert (await registry.models.get(model_id))["model_state"] == "DEPLOYED"
    await registry.models.undeploy(model_id)
    assert (await stored(beside, model_id)).source["model_state"] == "DEPLOYED"


@pytest.mark.parametrize("kind", [SQLiteStore, StoreBesideMLCommons])
async def test_a_first_prediction_deploys_the_model_once(kind: type[SQLiteStore]) -> None:
    async with closing(kind(":memory:")) as store:
        await check_first_prediction(store)


async def check_first_prediction(store: Store) -> None:
    registry = registry_on(store)
    model_id = await register(registry)
    for _ in range(2):
        await registry.models.deployment.ensure(model_id, await stored(store, model_id))
    assert await states_found(registry) == ["DEPLOYED"]
    tasks = await registry.tasks.search({"query": {"term": {"task_type": "DEPLOY_MODEL"}}})
    assert tasks["hits"]["total"]["value"] == 1


async def test_a_model_is_not_deployed_by_itself_where_that_is_switched_off(alone: Store) -> None:
    off = registry_on(alone, model_auto_deploy_enable=False)
    model_id = await register(off)
    with pytest.raises(InvalidRequest, match=r"^Model not ready yet. Please deploy the model first.$"):
        await off.models.deployment.ensure(model_id, await stored(alone, model_id))
    on = registry_on(alone)
    await on.models.update(model_id, {"deploy_setting": {"is_auto_deploy_enabled": False}})
    with pytest.raises(InvalidRequest) as raised:
        await on.models.deployment.ensure(model_id, await stored(alone, model_id))
    text = "Auto deployment disabled for this model, please deploy model first Model ID: "
    assert raised.value.reason == text + model_id
    await off.models.deploy(model_id, {})
    await off.models.deployment.ensure(model_id, await stored(alone, model_id))


async def test_a_model_whose_connector_is_gone_or_unreadable_is_not_deployed(alone: Store) -> None:
    registry = registry_on(alone)
    model_id = await register(registry)
    connector_id = (await stored(alone, model_id)).source["connector_id"]
    document = await alone.get(Index.CONNECTOR, connector_id)
    assert document is not None
    await alone.put(Index.CONNECTOR, connector_id, {**document.source, "credential": {"key": "not cipher text"}})
    with pytest.raises(MLStreamError) as raised:
        await registry.models.deploy(model_id, {})
    assert raised.value.status == 500
    await alone.delete(Index.CONNECTOR, connector_id)
    with pytest.raises(NotFound, match=f"Failed to find connector:{connector_id}"):
        await registry.models.deploy(model_id, {})
    assert await states_found(registry) == ["REGISTERED"]


async def test_with_remote_inference_off_nothing_is_created_or_deployed(alone: Store) -> None:
    model_id = await register(registry_on(alone))
    registry = registry_on(alone, remote_inference_enabled=False)
    for call in (
        registry.connectors.create(CONNECTOR),
        registry.models.register({"name": "m", "function_name": "remote", "connector_id": "x"}),
        registry.models.deploy(model_id, {}),
    ):
        with pytest.raises(InvalidRequest, match="Remote Inference is currently disabled"):
            await call


class FinishedBatch:
    """A provider whose batch jobs are all done."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []

    async def refresh(self, task_id: str, source: Json) -> Json:
        return {**source, "state": "COMPLETED", "remote_job": {"id": task_id}}

    async def cancel(self, task_id: str, source: Json) -> None:
        self.cancelled.append(task_id)


async def test_an_unfinished_batch_job_is_brought_up_to_date_when_it_is_asked_for(alone: Store) -> None:
    batch = FinishedBatch()
    registry = registry_over(alone, Settings(), lambda: 0, batch)
    task = {"task_type": "BATCH_PREDICTION", "state": "RUNNING"}
    open_id = (await alone.create(Index.TASK, task)).id
    closed_id = (await alone.create(Index.TASK, {**task, "state": "CANCELLED"})).id
    assert (await registry.tasks.get(open_id))["remote_job"] == {"id": open_id}
    assert "remote_job" not in await registry.tasks.get(closed_id)
    assert await registry.tasks.cancel(open_id) == {"status": "OK"}
    assert batch.cancelled == [open_id]
