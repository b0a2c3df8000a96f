"""Where the deployed state of a model is kept, and when a model is deployed by itself."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Conflict, InvalidRequest, MLStreamError, NotFound, Unavailable
from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.store import Index, Store, Written
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.registry.registry_setup import (
    StoreInCluster,
    add_model,
    closing,
    connector_body,
    registry_on,
    stored,
)
from tests.scripted_protocol import OwnProtocol


@pytest.fixture
async def alone() -> AsyncIterator[Store]:
    async with closing(SQLiteStore(":memory:")) as store:
        yield store


@pytest.fixture
async def clustered() -> AsyncIterator[StoreInCluster]:
    async with closing(StoreInCluster(":memory:")) as store:
        yield store


async def first_prediction(registry: Registry, store: Store, model_id: str) -> None:
    deploy = await registry.models.deployment.plan(model_id, await stored(store, Index.MODEL, model_id))
    if deploy is not None:
        await deploy()


async def shown_states(registry: Registry) -> list[str]:
    response = await registry.models.search(ANYONE, {})
    return [hit["_source"]["model_state"] for hit in response["hits"]["hits"]]


async def test_in_the_embedded_store_the_state_stands_in_the_models_document(alone: Store) -> None:
    registry = registry_on(alone)
    model_id = await add_model(registry)
    await registry.models.deploy(ANYONE, model_id, {})
    assert (await stored(alone, Index.MODEL, model_id)).source["model_state"] == "DEPLOYED"
    await registry.models.undeploy(ANYONE, model_id, {})
    assert (await stored(alone, Index.MODEL, model_id)).source["model_state"] == "UNDEPLOYED"


async def test_in_a_cluster_no_document_ever_says_that_the_sidecar_has_deployed_it(clustered: StoreInCluster) -> None:
    """ML Commons may be installed later: its job makes DEPLOY_FAILED of what none of its nodes holds."""
    registry = registry_on(clustered)
    model_id = await add_model(registry)
    before = await stored(clustered, Index.MODEL, model_id)
    await registry.models.deploy(ANYONE, model_id, {})
    await registry.models.deploy(ANYONE, model_id, {})
    shown = await registry.models.get(ANYONE, model_id)
    assert (shown["model_state"], shown["current_worker_node_count"]) == ("DEPLOYED", 1)
    assert await shown_states(registry) == ["DEPLOYED"]
    assert await stored(clustered, Index.MODEL, model_id) == before
    assert await undeploy(registry, model_id) == "undeployed"
    assert await undeploy(registry, model_id) == "not_found"
    assert await shown_states(registry) == ["UNDEPLOYED"]
    assert clustered.cluster.told == []


async def undeploy(registry: Registry, model_id: str) -> str:
    (node,) = (await registry.models.undeploy(ANYONE, model_id, {})).values()
    return str(node["stats"][model_id])


async def test_in_a_cluster_the_same_rules_hold_for_deployed_models(clustered: StoreInCluster) -> None:
    registry = registry_on(clustered)
    model_id = await add_model(registry)
    await registry.models.deploy(ANYONE, model_id, {})
    connector_id = (await stored(clustered, Index.MODEL, model_id)).source["connector_id"]
    with pytest.raises(InvalidRequest, match="1 models are still using this connector, please undeploy"):
        await registry.connectors.update(ANYONE, connector_id, {"name": "x"})
    with pytest.raises(InvalidRequest, match="Model cannot be deleted in deploying or deployed state"):
        await registry.models.delete(ANYONE, model_id)
    await registry.models.undeploy(ANYONE, model_id, {})
    await registry.connectors.update(ANYONE, connector_id, {"name": "x"})
    await registry.models.delete(ANYONE, model_id)
    assert await clustered.get(Index.DEPLOYMENT, model_id) is None


async def test_what_ml_commons_has_deployed_is_shown_so_and_undeployed_by_it(clustered: StoreInCluster) -> None:
    registry = registry_on(clustered)
    model_id = await add_model(registry)
    document = await stored(clustered, Index.MODEL, model_id)
    deployed = {**document.source, "model_state": "DEPLOYED"}
    await clustered.put(Index.MODEL, model_id, deployed)
    assert (await registry.models.get(ANYONE, model_id))["model_state"] == "DEPLOYED"
    assert await undeploy(registry, model_id) == "undeployed"
    assert clustered.cluster.told == [("undeploy", model_id)]
    assert (await stored(clustered, Index.MODEL, model_id)).source == deployed  # that is ML Commons' to write


async def test_a_state_that_an_ml_commons_left_behind_can_be_undone(clustered: StoreInCluster) -> None:
    registry = registry_on(clustered)
    model_id = await add_model(registry)
    document = await stored(clustered, Index.MODEL, model_id)
    await clustered.put(Index.MODEL, model_id, {**document.source, "model_state": "DEPLOYED"})
    clustered.cluster.has_ml_commons = False
    assert await undeploy(registry, model_id) == "undeployed"
    assert (await stored(clustered, Index.MODEL, model_id)).source["model_state"] == "UNDEPLOYED"
    await registry.models.delete(ANYONE, model_id)


@pytest.mark.parametrize("kind", [SQLiteStore, StoreInCluster])
async def test_a_first_prediction_deploys_the_model_once(kind: type[SQLiteStore]) -> None:
    async with closing(kind(":memory:")) as store:
        await check_first_prediction(store)


async def check_first_prediction(store: Store) -> None:
    registry = registry_on(store)
    model_id = await add_model(registry)
    for _ in range(2):
        await first_prediction(registry, store, model_id)
    assert await shown_states(registry) == ["DEPLOYED"]
    tasks = await registry.tasks.search(ANYONE, {"query": {"term": {"task_type": "DEPLOY_MODEL"}}})
    assert tasks["hits"]["total"]["value"] == 1


class StoreWithoutWrites(SQLiteStore):
    """A store that can refuse writes, as an OpenSearch without disk space, or with a conflict."""

    refusal: MLStreamError | None = None

    async def create(self, index: Index, source: Mapping[str, Any], id: str | None = None) -> Written:
        self._check_writable()
        return await super().create(index, source, id)

    async def put(
        self,
        index: Index,
        id: str,
        source: Mapping[str, Any],
        *,
        if_seq_no: int | None = None,
        if_primary_term: int | None = None,
    ) -> Written:
        self._check_writable()
        return await super().put(index, id, source, if_seq_no=if_seq_no, if_primary_term=if_primary_term)

    def _check_writable(self) -> None:
        if self.refusal is not None:
            raise self.refusal


@pytest.mark.parametrize("refusal", [Unavailable("read-only"), Conflict("others were first")])
async def test_a_first_prediction_goes_on_where_the_state_cannot_be_stored(
    caplog: pytest.LogCaptureFixture, refusal: MLStreamError
) -> None:
    store = StoreWithoutWrites(":memory:")
    async with closing(store):
        registry = registry_on(store)
        model_id = await add_model(registry)
        store.refusal = refusal
        await first_prediction(registry, store, model_id)
        assert caplog.messages == [f"Model {model_id} is used without being stored as deployed: {refusal.reason}"]
        with pytest.raises(type(refusal)):
            await registry.models.deploy(ANYONE, model_id, {})
        store.refusal = None
        await first_prediction(registry, store, model_id)
        assert await shown_states(registry) == ["DEPLOYED"]


async def test_a_model_is_not_deployed_by_itself_where_that_is_switched_off(alone: Store) -> None:
    off = registry_on(alone, model_auto_deploy_enable=False)
    model_id = await add_model(off)
    with pytest.raises(InvalidRequest, match=r"^Model not ready yet. Please deploy the model first.$"):
        await first_prediction(off, alone, model_id)
    on = registry_on(alone)
    await on.models.update(ANYONE, model_id, {"deploy_setting": {"is_auto_deploy_enabled": False}})
    with pytest.raises(InvalidRequest) as raised:
        await first_prediction(on, alone, model_id)
    text = "Auto deployment disabled for this model, please deploy model first Model ID: "
    assert raised.value.reason == text + model_id
    await off.models.deploy(ANYONE, model_id, {})
    await first_prediction(off, alone, model_id)


async def test_a_model_whose_connector_is_gone_or_unreadable_is_not_deployed(alone: Store) -> None:
    registry = registry_on(alone)
    model_id = await add_model(registry)
    connector_id = (await stored(alone, Index.MODEL, model_id)).source["connector_id"]
    document = await alone.get(Index.CONNECTOR, connector_id)
    assert document is not None
    await alone.put(Index.CONNECTOR, connector_id, {**document.source, "credential": {"key": "not cipher text"}})
    with pytest.raises(MLStreamError) as raised:
        await registry.models.deploy(ANYONE, model_id, {})
    assert raised.value.status == 500
    inline_id = await add_model(registry, connector=connector_body())
    inline = await stored(alone, Index.MODEL, inline_id)
    broken = {**inline.source["connector"], "credential": {"key": "not cipher text"}}
    await alone.put(Index.MODEL, inline_id, {**inline.source, "connector": broken})
    with pytest.raises(MLStreamError):
        await registry.models.deploy(ANYONE, inline_id, {})
    await alone.delete(Index.MODEL, inline_id)
    await alone.delete(Index.CONNECTOR, connector_id)
    with pytest.raises(NotFound, match=f"Failed to find connector:{connector_id}"):
        await registry.models.deploy(ANYONE, model_id, {})
    assert await shown_states(registry) == ["REGISTERED"]


async def test_with_remote_inference_off_nothing_is_created_or_deployed(alone: Store) -> None:
    model_id = await add_model(registry_on(alone))
    registry = registry_on(alone, remote_inference_enabled=False)
    for call in (
        registry.connectors.create(ANYONE, connector_body()),
        registry.models.register(ANYONE, {"name": "m", "function_name": "remote", "connector_id": "x"}),
        registry.models.deploy(ANYONE, model_id, {}),
    ):
        with pytest.raises(InvalidRequest, match="Remote Inference is currently disabled"):
            await call


async def add_own_model(store: Store) -> None:
    action = {"action_type": "PREDICT", "method": "POST", "url": "own://m", "request_body": "{}"}
    connector = {"name": "c", "version": "1", "protocol": "http", "actions": [action]}
    source: dict[str, Any] = {"name": "m", "algorithm": "REMOTE", "model_state": "REGISTERED", "connector": connector}
    await store.create(Index.MODEL, source, "own-m")


async def test_who_asks_for_a_deployment_has_the_files_read_again_and_a_prediction_has_not(alone: Store) -> None:
    await add_own_model(alone)
    own = OwnProtocol()
    deployment = replace(registry_on(alone).models.deployment, protocols=[own])
    deploy = await deployment.plan("own-m", await stored(alone, Index.MODEL, "own-m"))
    assert deploy is not None
    await deploy()
    assert await deployment.plan("own-m", await stored(alone, Index.MODEL, "own-m")) is None
    assert own.model.asked == ["ensure"] * 2
    await deployment.deploy("own-m")
    assert own.model.asked[2:] == ["load", "ensure"]
    await deployment.undeploy(["own-m"])
    assert own.model.asked[4:] == ["unload"]


@pytest.mark.parametrize("by_a_prediction", [False, True])
async def test_a_model_that_another_caller_undeploys_meanwhile_is_not_shown_as_deployed_and_unloaded(
    alone: Store, by_a_prediction: bool
) -> None:
    await add_own_model(alone)
    own = OwnProtocol()
    deployment = replace(registry_on(alone).models.deployment, protocols=[own])
    own.model.when_loaded = lambda: deployment.undeploy(["own-m"])
    if by_a_prediction:
        deploy = await deployment.plan("own-m", await stored(alone, Index.MODEL, "own-m"))
        assert deploy is not None
        await deploy()
    else:
        await deployment.deploy("own-m")
    assert (await stored(alone, Index.MODEL, "own-m")).source["model_state"] == "DEPLOYED"
    assert own.model.is_loaded
