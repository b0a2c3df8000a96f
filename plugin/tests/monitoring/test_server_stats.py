"""Stats by name and by body, and which models are in them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound, UpstreamError
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.monitoring.monitoring_setup import SERVER, Monitored, monitored
from tests.registry.registry_setup import add_model, connector_body

NODE_STATS = {
    "ml_executing_task_count", "ml_request_count", "ml_failure_count", "ml_deployed_model_count",
    "ml_circuit_breaker_trigger_count",
}  # fmt: skip


class StoreOfCluster(SQLiteStore):
    """A store that knows the health of some of its indices."""

    async def index_statuses(self) -> Mapping[Index, str]:  # type: ignore[override]  # a file has none
        return {Index.MODEL: "green", Index.CONFIG: "yellow", Index.DEPLOYMENT: "red"}


def counts(requests: int, failures: int = 0) -> dict[str, int]:
    shown = {"ml_action_request_count": requests, "ml_action_failure_count": failures}
    return {name: count for name, count in shown.items() if count}


async def test_all_stats_of_a_used_server(server: Monitored) -> None:
    model_id = await server.deployed_model()
    await server.registry.connectors.create(ANYONE, connector_body())
    await server.store.create(Index.MODEL, {"chunk_number": 0, "model_id": "local"})
    server.predict(model_id)
    server.predict(model_id, UpstreamError("x"))
    with pytest.raises(NotFound):
        await server.registry.models.deploy(ANYONE, "made up", {})
    with server.observations.whole(ANYONE) as running:
        running.set_model(model_id)
        response = await server.stats.named(ANYONE, [], [])
        of_node = await server.node_stats()
    assert {name: value for name, value in response.items() if name != "nodes"} == {
        "ml_model_count": 1,
        "ml_connector_count": 2,
    }
    assert of_node == {
        "server": SERVER,
        "ml_executing_task_count": 1,
        "ml_request_count": 5,
        "ml_failure_count": 2,
        "ml_deployed_model_count": 1,
        "ml_circuit_breaker_trigger_count": 0,
        "algorithms": {"remote": {"predict": counts(2, 1), "register": counts(1), "deploy": counts(2, 1)}},
        "models": {model_id: {"predict": counts(2, 1), "deploy": counts(1)}},
    }


async def test_a_server_that_did_nothing_has_the_same_shape(server: Monitored) -> None:
    response = await server.stats.named(ANYONE, [], [])
    assert list(response) == ["ml_model_count", "ml_connector_count", "nodes"]
    of_node = await server.node_stats()
    assert of_node == {"server": SERVER, **dict.fromkeys(NODE_STATS, 0), "algorithms": {}, "models": {}}


async def test_a_store_that_knows_the_health_of_its_indices_shows_it(tmp_path: Path) -> None:
    async with monitored(tmp_path, StoreOfCluster(":memory:")) as server:
        response = dict(await server.stats.named(ANYONE, [], ["other"]))
        statuses = {name: value for name, value in response.items() if name.endswith("_status")}
        assert statuses == {
            "ml_model_index_status": "green",
            "ml_connector_index_status": "non-existent",
            "ml_config_index_status": "yellow",
            "ml_task_index_status": "non-existent",
            "ml_controller_index_status": "non-existent",
        }
        assert await server.stats.named(ANYONE, ["ml_config_index_status"], []) == {"ml_config_index_status": "yellow"}


@pytest.mark.parametrize(
    ("names", "cluster", "of_node"),
    [
        (["ml_model_count"], {"ml_model_count"}, None),
        (["ML_Connector_Count"], {"ml_connector_count"}, None),
        (["ml_request_count"], set(), {"ml_request_count"}),
        (["ml_request_count", "ML_MODEL_COUNT"], {"ml_model_count"}, {"ml_request_count"}),
        (["ml_jvm_heap_usage"], set(), set()),
        (["ml_model_index_status"], set(), None),
    ],
)
async def test_stats_are_chosen_by_name(
    server: Monitored, names: list[str], cluster: set[str], of_node: set[str] | None
) -> None:
    model_id = await server.deployed_model()
    response = dict(await server.stats.named(ANYONE, names, []))
    nodes = response.pop("nodes", None)
    assert response.keys() == cluster
    if of_node is None:
        assert nodes is None
        return
    shown = await server.node_stats(*names)
    # As in ML Commons: the models are always there, the algorithms by name.
    assert (shown.pop("algorithms"), shown.pop("models").keys(), shown.pop("server")) == ({}, {model_id}, SERVER)
    assert shown.keys() == of_node


async def test_a_body_chooses_levels_stats_actions_and_models(server: Monitored) -> None:
    one, two = await server.deployed_model(), await server.deployed_model()
    server.predict(one, UpstreamError("x"))
    assert await server.stats.selected(
        ANYONE, {"target_stat_levels": ["cluster"], "cluster_level_stats": ["ml_model_count"]}
    ) == {"ml_model_count": 2}
    of_node = await server.node_stats(target_stat_levels=["NODE"], node_level_stats=["ml_request_count"])
    assert of_node.keys() == {"server", "ml_request_count", "algorithms", "models"}
    models = await server.node_stats(target_stat_levels=["model"], models=[one], actions=["predict"])
    assert models == {"server": SERVER, "algorithms": {}, "models": {one: {"predict": counts(1, 1)}}}
    failures = await server.node_stats(target_stat_levels=["action"], action_level_stats=["ml_action_failure_count"])
    failed = {"predict": {"ml_action_failure_count": 1}}
    assert failures == {"server": SERVER, "algorithms": {"remote": failed}, "models": {one: failed}}
    others = await server.node_stats(target_stat_levels=["algorithm"], algorithms=["KMeans"])
    assert (others["algorithms"], others["models"].keys()) == ({}, {one, two})
    assert (await server.node_stats(node_ids=["_all"])).keys() == {"server", "algorithms", "models"}
    for nothing in ({"node_ids": ["other"]}, {"target_stat_levels": ["model"], "models": ["nope"]}):
        assert await server.stats.selected(ANYONE, nothing) == {}


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({"target_stat_levels": ["zap"]}, "Wrong ML stat level [zap]"),
        ({"cluster_level_stats": ["zap"]}, "Wrong ML cluster level stat [zap]"),
        ({"node_level_stats": ["zap"]}, "Wrong ML node level stat [zap]"),
        ({"action_level_stats": ["zap"]}, "Wrong ML action level stat [zap]"),
        ({"algorithms": ["zap"]}, "Wrong function name [zap]"),
        ({"actions": ["zap"]}, "Wrong action name [zap]"),
        ({"node_ids": "n"}, "node_ids must be an array of strings"),
        ({"models": [1]}, "models must be an array of strings"),
    ],
)
async def test_a_body_with_an_unknown_name_is_refused(server: Monitored, body: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        await server.stats.selected(ANYONE, body)
    assert raised.value.reason.startswith(wrong)


@pytest.mark.parametrize("names", [["zap"], ["ml_request_count", "zap"], ["ml_action_request_count"], [""]])
async def test_a_name_that_is_no_stat_of_cluster_or_node_is_refused(server: Monitored, names: list[str]) -> None:
    with pytest.raises(InvalidRequest, match=r"^Wrong ML cluster level stat"):
        await server.stats.named(ANYONE, names, [])


async def test_a_deleted_model_vanishes_and_the_servers_own_counts_stay(server: Monitored) -> None:
    model_id = await add_model(server.registry)
    gone_elsewhere = await add_model(server.registry)
    server.predict(model_id)
    server.predict(gone_elsewhere)
    await server.registry.models.delete(ANYONE, model_id)
    await server.store.delete(Index.MODEL, gone_elsewhere)  # through another server
    of_node = await server.node_stats()
    assert (of_node["models"], of_node["algorithms"]["remote"]["predict"]) == ({}, counts(2))
    assert server.observations.statistics.models() == {}
