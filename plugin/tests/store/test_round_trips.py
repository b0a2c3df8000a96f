"""How many answers of the cluster a call waits for in a row: each takes a second of virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.predictions.model_cache import ModelCache
from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.registry.registry_setup import connector_body, registry_on
from tests.store.slow_cluster import SlowCluster
from tests.upstream.virtual_time_loop import VirtualTimeLoop, now


def in_virtual_time(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(test())

    return run


async def rounds(call: Coroutine[Any, Any, object]) -> float:
    began = now()
    await call
    return now() - began


def a_worker(cluster: SlowCluster, **settings: Any) -> tuple[Registry, ModelCache]:
    """The use cases and the cache of models of a worker that has just started."""
    store = cluster.store()
    registry = registry_on(store, **settings)
    live = LiveSettings(Settings(**settings))
    return registry, ModelCache(store, Cipher(store), live, registry.models.deployment.plan)


async def a_model(cluster: SlowCluster) -> str:
    registry, _ = a_worker(cluster)
    credential = {f"key{number}": "sk-secret" for number in range(3)}
    connector = await registry.connectors.create(ANYONE, connector_body(credential=credential))
    model = {"name": "m", "algorithm": "REMOTE", "is_controller_enabled": True, "model_group_id": "g", **connector}
    cluster.indices |= {Index.MODEL: {"m": model}, Index.MODEL_GROUP: {"g": {"access": "public"}}}
    return "m"


@in_virtual_time
async def test_a_connector_takes_two_round_trips_and_the_first_of_a_cluster_four() -> None:
    """The first one makes two indices and the master key, each of which the next needs."""
    cluster = SlowCluster()
    credential = {f"key{number}": "sk-secret" for number in range(5)}
    body = connector_body(credential=credential)
    assert await rounds(a_worker(cluster)[0].connectors.create(ANYONE, body)) == 4
    assert await rounds(a_worker(cluster)[0].connectors.create(ANYONE, body)) == 2
    assert len(cluster.indices[Index.CONNECTOR]) == 2


@in_virtual_time
async def test_a_first_prediction_takes_three_round_trips_and_one_of_a_new_worker_two() -> None:
    cluster = SlowCluster()
    model_id = await a_model(cluster)
    other = {"node": {"config_type": "x"}}
    cluster.indices[Index.DEPLOYMENT] = cluster.indices[Index.TASK] = dict(other)
    registry, models = a_worker(cluster, model_access_control_enabled=True)
    await registry.models.deployment.states.prepare()  # the node id is made once
    assert await rounds(models.get(ANYONE, model_id)) == 3
    assert cluster.indices[Index.DEPLOYMENT][model_id]["model_state"] == "DEPLOYED"
    _, models = a_worker(cluster, model_access_control_enabled=True)
    assert await rounds(models.get(ANYONE, model_id)) == 2


@in_virtual_time
async def test_a_first_prediction_fails_within_the_setting_where_the_cluster_hangs() -> None:
    cluster = SlowCluster()
    model_id = await a_model(cluster)
    _, models = a_worker(cluster)
    cluster.hangs = True
    began = now()
    with pytest.raises(Unavailable, match=r"did not respond to a read within 4\.5 s"):
        await models.get(ANYONE, model_id)
    assert now() - began == Settings().store_timeout_seconds < Settings().first_event_wait_seconds


@in_virtual_time
async def test_a_write_that_hangs_holds_a_first_prediction_no_longer_than_the_setting() -> None:
    cluster = SlowCluster()
    model_id = await a_model(cluster)
    _, models = a_worker(cluster)
    call = asyncio.create_task(models.get(ANYONE, model_id))
    await asyncio.sleep(2.5)  # its last read is answered
    cluster.hangs = True
    began = now()
    assert (await call).model_id == model_id
    assert now() - began <= 5


@in_virtual_time
async def test_many_who_deploy_a_model_at_once_all_succeed() -> None:
    cluster = SlowCluster()
    model_id = await a_model(cluster)
    workers = [a_worker(cluster)[1] for _ in range(50)]
    found = await asyncio.gather(*(models.get(ANYONE, model_id) for models in workers))
    assert {model.model_id for model in found} == {model_id}
