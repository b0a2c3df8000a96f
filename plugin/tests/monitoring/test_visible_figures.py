"""Profile and stats of a caller who may not see every model."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.registry.node import node_id
from opensearch_ml_stream.plugin.security.access_control import owner_of
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.rest_handlers.callers import Caller
from tests.monitoring.monitoring_setup import NOW, Monitored, monitored

ANN, BOB, ADMIN = Caller("ann"), Caller("bob"), Caller("admin", is_admin=True)
ALL: dict[str, Any] = {"return_all_models": True, "return_all_tasks": True}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Monitored]:
    switches = {"connector_access_control_enabled": True, "model_access_control_enabled": True}
    async with monitored(tmp_path, None, **switches) as opened:
        for caller in (ANN, BOB):
            access = {"access": "private", "owner": owner_of(caller)}
            await opened.store.create(Index.CONNECTOR, access, caller.name)
            await opened.store.create(Index.MODEL_GROUP, access, caller.name)
            model = {"model_group_id": caller.name, "algorithm": "REMOTE", "model_state": "DEPLOYED"}
            await opened.store.create(Index.MODEL, model, f"model of {caller.name}")
            opened.predict(f"model of {caller.name}")
        opened.predict("model of bob", UpstreamError("x"))
        yield opened


async def profile(server: Monitored, caller: Caller, **body: Any) -> Any:
    response: Any = await server.profiles.get(caller, body, view="node")
    return response["nodes"][await node_id(server.store, lambda: NOW)] if response else {}


async def stats(server: Monitored, caller: Caller) -> tuple[Any, Any]:
    response: Any = await server.stats.named(caller, [], [])
    return response, response["nodes"][await node_id(server.store, lambda: NOW)]


async def test_a_profile_has_the_models_and_predictions_that_its_caller_may_see(server: Monitored) -> None:
    with server.observations.whole(ANN) as of_ann, server.observations.whole(BOB) as of_bob:
        of_ann.set_model("model of ann")
        of_bob.set_model("model of bob")
        found = await profile(server, ANN, **ALL)
        assert found["models"].keys() == {"model of ann"}
        assert [task["model_id"] for task in found["tasks"].values()] == ["model of ann"]
        [bobs_task] = (await profile(server, BOB, **ALL))["tasks"]
        assert await profile(server, ANN, task_ids=[bobs_task]) == {}
        both = await profile(server, ADMIN, **ALL)
        assert len(both["models"]) == len(both["tasks"]) == 2
    assert await profile(server, ANN, model_ids=["model of bob"]) == {}
    assert (await profile(server, ANN, model_ids=["model of bob", "model of ann"]))["models"].keys() == {"model of ann"}


async def test_stats_count_what_their_caller_may_see(server: Monitored) -> None:
    with server.observations.whole(BOB) as running:
        running.set_model("model of bob")
        of_ann, of_bob, of_all = [await stats(server, caller) for caller in (ANN, BOB, ADMIN)]
    counts = [(of_store["ml_model_count"], of_store["ml_connector_count"]) for of_store, _ in (of_ann, of_bob, of_all)]
    assert counts == [(1, 1), (1, 1), (2, 2)]
    names = ("ml_executing_task_count", "ml_request_count", "ml_failure_count", "ml_deployed_model_count")
    numbers = [tuple(of_node[name] for name in names) for _, of_node in (of_ann, of_bob, of_all)]
    assert numbers == [(0, 1, 0, 1), (1, 2, 1, 1), (1, 3, 1, 2)]
    predictions = [of_node["algorithms"]["remote"]["predict"] for _, of_node in (of_ann, of_bob, of_all)]
    assert [counted["ml_action_request_count"] for counted in predictions] == [1, 2, 3]
    models = [of_node["models"].keys() for _, of_node in (of_ann, of_bob, of_all)]
    assert models == [{"model of ann"}, {"model of bob"}, {"model of ann", "model of bob"}]


async def test_figures_of_models_that_a_caller_may_not_see_are_kept(server: Monitored) -> None:
    await stats(server, ANN)
    assert server.observations.statistics.models().keys() == {"model of ann", "model of bob"}
