"""Profiles of models and tasks, by what a request asks for."""

from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, Throttled
from opensearch_ml_stream.plugin.monitoring import profiles as profiles_module
from opensearch_ml_stream.plugin.monitoring.profiles import summary
from opensearch_ml_stream.plugin.registry.node import node_id
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.monitoring.monitoring_setup import NOW, SERVER, Monitored, monitored
from tests.registry.registry_setup import StoreInCluster, add_model

ALL: dict[str, Any] = {"return_all_models": True, "return_all_tasks": True}


async def test_there_is_nothing_to_say_of_an_empty_server(server: Monitored) -> None:
    assert await server.profiles.get(ANYONE, ALL, view="node") == {}
    assert await server.profiles.get(ANYONE, ALL, view="model") == {}


async def test_a_deployed_model_that_nobody_called_has_its_state_and_nodes_alone(server: Monitored) -> None:
    model_id = await server.deployed_model()
    await add_model(server.registry)  # not deployed
    node = await node_id(server.store, lambda: NOW)
    profile = {"model_state": "DEPLOYED", "target_worker_nodes": [node], "worker_nodes": [node]}
    expected = {"nodes": {node: {"server": SERVER, "models": {model_id: profile}}}}
    assert await server.profiles.get(ANYONE, ALL, view="node") == expected
    by_model = {
        "target_worker_nodes": [node],
        "worker_nodes": [node],
        "nodes": {node: {"server": SERVER, "model_state": "DEPLOYED"}},
    }
    assert await server.profiles.get(ANYONE, ALL, view="model") == {"models": {model_id: by_model}}


async def test_a_called_model_has_the_figures_of_its_predictions(server: Monitored) -> None:
    model_id = await server.deployed_model()
    ticks = iter([0.0, 0.0, 0.25, 1.0, 1.0, 1.5])
    server.observations.clock = lambda: next(ticks)
    server.predict(model_id)
    server.predict(model_id, Throttled("x"))
    model = (await server.node_profile(model_ids=[model_id]))["models"][model_id]
    one = {"count": 1} | dict.fromkeys(("max", "min", "average", "p50", "p90", "p99"), 250.0)
    both = {"count": 2, "max": 500.0, "min": 250.0, "average": 375.0, "p50": 375.0, "p90": 475.0, "p99": 497.5}
    assert model["model_inference_stats"] == one
    assert model["predict_request_stats"] == both
    assert model["throttled_request_count"] == 1
    assert list(model) == [
        "model_state", "target_worker_nodes", "worker_nodes", "model_inference_stats", "predict_request_stats",
        "throttled_request_count",
    ]  # fmt: skip


async def test_running_predictions_are_tasks_as_ml_commons_shows_them(
    server: Monitored, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await node_id(server.store, lambda: NOW)
    server.observations.clock = lambda: 5.0
    monkeypatch.setattr(profiles_module, "monotonic", lambda: 7.5)
    with server.observations.whole(ANYONE) as observed:
        observed.set_model("m")
        [(task_id, task)] = (await server.node_profile(return_all_tasks=True))["tasks"].items()
        assert task == {
            "task_id": task_id, "model_id": "m", "task_type": "PREDICTION", "function_name": "REMOTE",
            "state": "RUNNING", "input_type": "REMOTE", "worker_node": [node], "create_time": NOW - 2_500,
            "last_update_time": NOW - 2_500, "is_async": False,
        }  # fmt: skip
        assert await server.node_profile(task_ids=[task_id, "x"]) == {"server": SERVER, "tasks": {task_id: task}}
        for nothing in ({"task_ids": ["x"]}, {"model_ids": ["m"]}, {"return_all_models": True}):
            assert await server.profiles.get(ANYONE, nothing, view="node") == {}
        assert await server.profiles.get(ANYONE, ALL, view="model") == {"models": {"m": {"tasks": {task_id: task}}}}
    assert await server.profiles.get(ANYONE, ALL, view="node") == {}


async def test_models_are_chosen_by_id(server: Monitored) -> None:
    one, two = await server.deployed_model(), await server.deployed_model()
    assert (await server.node_profile(model_ids=[one, "nope"]))["models"].keys() == {one}
    assert (await server.node_profile(return_all_models=True))["models"].keys() == {one, two}
    assert await server.profiles.get(ANYONE, {"model_ids": ["nope"]}, view="node") == {}
    assert await server.profiles.get(ANYONE, {"task_ids": ["nope"]}, view="node") == {}


async def test_an_undeployed_model_and_a_deleted_one_vanish_with_their_figures(server: Monitored) -> None:
    model_id = await server.deployed_model()
    server.predict(model_id)
    await server.registry.models.undeploy(ANYONE, model_id, {})
    assert await server.profiles.get(ANYONE, ALL, view="node") == {}
    await server.registry.models.deploy(ANYONE, model_id, {})
    assert "predict_request_stats" not in (await server.node_profile(**ALL))["models"][model_id]
    await server.registry.models.undeploy(ANYONE, model_id, {})
    await server.registry.models.delete(ANYONE, model_id)
    assert await server.profiles.get(ANYONE, ALL, view="node") == {}
    assert server.observations.statistics.models() == {}


@pytest.mark.parametrize("mine", [["other", "MINE"], ["MINE"], ["_all"], ["_local"], []])
async def test_the_node_answers_if_it_is_meant(server: Monitored, mine: list[str]) -> None:
    await server.deployed_model()
    node = await node_id(server.store, lambda: NOW)
    named = [node if name == "MINE" else name for name in mine]
    assert (await server.node_profile(node_ids=named, **ALL))["models"]
    assert await server.profiles.get(ANYONE, {"node_ids": ["other"], **ALL}, view="node") == {}


@pytest.mark.parametrize(
    ("body", "view", "reason"),
    [
        ({}, "zap", "view must be one of node, model"),
        ({"model_ids": "m"}, "node", "model_ids must be an array of strings"),
        ({"task_ids": [1]}, "node", "task_ids must be an array of strings"),
        ({"node_ids": {}}, "node", "node_ids must be an array of strings"),
        ({"return_all_models": "x"}, "node", "return_all_models must be true or false"),
        ({"return_all_tasks": 1}, "node", "return_all_tasks must be true or false"),
        ({"model_ids": ["m"] * 10_001}, "node", "model_ids has more than 10000 ids"),
    ],
)
async def test_what_cannot_be_read_is_refused(server: Monitored, body: dict[str, Any], view: str, reason: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        await server.profiles.get(ANYONE, body, view=view)
    assert raised.value.reason == reason


async def test_beside_ml_commons_the_models_of_both_are_deployed_and_orphans_are_not(tmp_path: Path) -> None:
    async with monitored(tmp_path, StoreInCluster(":memory:")) as server:
        ours, theirs = await server.deployed_model(), await add_model(server.registry)
        document = await server.store.get(Index.MODEL, theirs)
        assert document is not None
        await server.store.put(Index.MODEL, theirs, {**document.source, "model_state": "DEPLOYED"})
        await server.store.create(Index.DEPLOYMENT, {"model_state": "DEPLOYED"}, "orphan")
        local = {"model_state": "DEPLOYED", "algorithm": "TEXT_EMBEDDING"}
        await server.store.create(Index.MODEL, local, "local")
        assert (await server.node_profile(**ALL))["models"].keys() == {ours, theirs}


def test_one_duration_is_all_of_its_summary() -> None:
    assert summary([25.5]) == {"count": 1} | dict.fromkeys(("max", "min", "average", "p50", "p90", "p99"), 25.5)


def test_percentiles_are_interpolated_as_ml_commons_does() -> None:
    recorded = {
        "count": 2, "max": 1601.453534, "min": 312.193828, "average": 956.823681, "p50": 956.8236810000001,
        "p90": 1472.5275634, "p99": 1588.56093694,
    }  # fmt: skip
    ours = summary([1601.453534, 312.193828])
    assert list(ours) == list(recorded)
    assert ours == pytest.approx(recorded)


def test_the_order_of_durations_does_not_matter() -> None:
    expected = {"count": 100, "max": 99, "min": 0, "average": 49.5, "p50": 49.5, "p90": 89.1, "p99": 98.01}
    assert summary(list(range(100))[::-1]) == pytest.approx(expected)
