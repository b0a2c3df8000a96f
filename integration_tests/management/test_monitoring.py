"""Profile, stats, controllers and configs of a running sidecar: by opensearch-py's own methods, by the requests that
opensearch-py-ml makes, against recorded responses of ML Commons 3.6.0, and with two workers."""

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from integration_tests.management.management_server import CONNECTOR, open_test_registry
from integration_tests.support import connector_bodies
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually, eventually_async
from integration_tests.support.fake_provider import Act, FakeProvider, Request, Step, openai_stream
from integration_tests.support.sidecars import Sidecar, running_sidecar
from opensearchpy import NotFoundError, OpenSearch, RequestError

from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.metrics import Metrics
from opensearch_ml_stream.plugin.monitoring.profiles import Profiles
from opensearch_ml_stream.plugin.monitoring.server_stats import ServerStats
from opensearch_ml_stream.plugin.monitoring.statistics import open_statistics
from opensearch_ml_stream.plugin.observation import Observations
from opensearch_ml_stream.plugin.registry.deployment_state_store import DeploymentStateStore
from opensearch_ml_stream.plugin.registry.document_access import VisibleDocuments
from opensearch_ml_stream.plugin.registry.node import ServerNode
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.store import Store
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE

RECORDED = json.loads((Path(__file__).with_name("recordings") / "monitoring.json").read_text())
QUESTION = {"parameters": {"inputs": "x"}}
LIMIT = {"limit": "4", "unit": "MINUTES"}
# Names in ML Commons' responses that ours lack, and names that are ours.
LACKING = {"predictor", "ml_jvm_heap_usage", *(f"ml_{name}_index_status" for name in (
    "model", "connector", "config", "task", "controller"
))}  # fmt: skip
OWN = {"server", "throttled_request_count"}
_ID = re.compile(r"(?=.*[0-9A-Z])[A-Za-z0-9_-]{16,36}")


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("monitoring")) as running:
        yield running


@pytest.fixture(scope="module")
def client(sidecar: Sidecar) -> Iterator[OpenSearch]:
    with OpenSearch(sidecar.url) as opened:
        yield opened


def shape(value: Any) -> Any:
    """What a response's objects have in them: its names, one for all ids, and the kinds of its values."""
    if isinstance(value, dict):
        return {"ID" if _ID.fullmatch(name) else name: shape(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shape(one) for one in value[:1]]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def without(value: Any, names: set[str]) -> Any:
    if isinstance(value, dict):
        return {name: without(one, names) for name, one in value.items() if name not in names}
    return value


def assert_as_recorded(name: str, response: Any) -> None:
    assert shape(without(response, OWN)) == shape(without(RECORDED[name], LACKING))


def predict(sidecar: Sidecar, model_id: str, *, streamed: bool = True) -> int:
    path = f"/_plugins/_ml/models/{model_id}/_predict" + ("/stream" if streamed else "")
    return sidecar.client.post(path, json=QUESTION).status_code


def only_node(response: Any) -> Any:
    [node] = response["nodes"].values()
    return node


def test_a_called_model_is_profiled_through_opensearch_py(sidecar: Sidecar, client: OpenSearch) -> None:
    ml = client.plugins.ml
    with background_provider(openai_stream(["a"])) as provider:
        model_id = sidecar.create_model(connector_bodies.openai(provider.url))
        assert ml.get_profile_models(model_id=model_id) == {}
        sidecar.post(f"/models/{model_id}/_deploy", {})
        assert_as_recorded("profile_uncalled", ml.get_profile_models(model_id=model_id))
        assert [predict(sidecar, model_id) for _ in range(3)] == [200] * 3
    assert predict(sidecar, model_id) == 424
    profile = ml.get_profile(body={"model_ids": [model_id]})
    assert_as_recorded("profile", profile)
    assert_as_recorded("profile_by_model", ml.get_profile_models(model_id=model_id, params={"view": "model"}))
    model = only_node(profile)["models"][model_id]
    assert (model["predict_request_stats"]["count"], model["model_inference_stats"]["count"]) == (4, 3)
    assert only_node(ml.get_profile())["models"][model_id] == model
    assert only_node(ml.get_profile_models())["models"][model_id] == model
    assert only_node(profile)["server"].endswith(sidecar.url.rpartition("/")[2].partition(":")[2])
    assert ml.get_profile_tasks() == {} and ml.get_profile_tasks(task_id="nope") == {}


def test_a_running_stream_is_a_task_until_its_client_disconnects(sidecar: Sidecar, client: OpenSearch) -> None:
    ml = client.plugins.ml
    with background_provider([*openai_stream(["a"])[:3], Act.WAIT]) as provider:
        model_id = sidecar.create_model(connector_bodies.openai(provider.url))
        path = f"/_plugins/_ml/models/{model_id}/_predict/stream"
        with sidecar.client.stream("POST", path, json=QUESTION) as response:
            assert response.status_code == 200
            tasks = ml.get_profile_tasks()
            assert_as_recorded("profile_tasks", tasks)
            [(task_id, task)] = only_node(tasks)["tasks"].items()
            assert task["model_id"] == model_id
            [(same_id, again)] = only_node(ml.get_profile_tasks(task_id=task_id))["tasks"].items()
            assert (same_id, again["model_id"]) == (task_id, model_id)
            assert only_node(ml.get_stats(stat="ml_executing_task_count"))["ml_executing_task_count"] == 1
        eventually(lambda: ml.get_profile_tasks() == {})


def test_stats_are_read_through_opensearch_py(sidecar: Sidecar, client: OpenSearch) -> None:
    ml = client.plugins.ml
    before = only_node(ml.get_stats())
    with background_provider(openai_stream(["a"])) as provider:
        model_id = sidecar.create_model(connector_bodies.openai(provider.url))
        assert predict(sidecar, model_id) == 200
    assert predict(sidecar, model_id) == 424
    selected = {"target_stat_levels": ["cluster", "node", "algorithm", "model"], "models": [model_id]}
    stats = client.transport.perform_request("GET", "/_plugins/_ml/stats", body=selected)
    assert stats["ml_model_count"] == stats["ml_connector_count"] > 0
    of_node = only_node(stats)
    assert of_node["models"] == {
        model_id: {
            "predict": {"ml_action_request_count": 2, "ml_action_failure_count": 1},
            "deploy": {"ml_action_request_count": 1},
        }
    }
    assert of_node["ml_request_count"] - before["ml_request_count"] == 4  # register, deploy, two predictions
    assert of_node["ml_failure_count"] - before["ml_failure_count"] == 1
    node_id = next(iter(stats["nodes"]))
    assert ml.get_stats(node_id=node_id).keys() == ml.get_stats().keys() == stats.keys()
    assert "nodes" not in ml.get_stats(node_id="other")
    assert ml.get_stats(stat="ml_model_count") == {"ml_model_count": stats["ml_model_count"]}
    by_name = only_node(ml.get_stats(node_id=f"{node_id},other", stat="ml_request_count"))
    assert by_name.keys() - OWN == only_node(RECORDED["stats_by_name"]).keys()
    assert by_name["algorithms"] == {}
    with pytest.raises(RequestError, match="Wrong ML cluster level stat"):
        ml.get_stats(stat="zap")


def test_stats_have_the_names_that_ml_commons_has(sidecar: Sidecar) -> None:
    with background_provider(openai_stream(["a"])) as provider:
        model_id = sidecar.create_model(connector_bodies.openai(provider.url))
        assert predict(sidecar, model_id) == 200
    stats = sidecar.client.get("/_plugins/_ml/stats").json()
    ours, theirs = without(stats, OWN), without(RECORDED["stats"], LACKING)
    assert ours.keys() == theirs.keys()
    assert only_node(ours).keys() == only_node(theirs).keys()
    assert only_node(ours)["algorithms"]["remote"].keys() == only_node(theirs)["algorithms"]["remote"].keys()
    assert only_node(ours)["models"][model_id].keys() == {"predict", "deploy"}


def test_controllers_are_kept_through_opensearch_py(sidecar: Sidecar, client: OpenSearch) -> None:
    ml = client.plugins.ml
    model_id = sidecar.create_model(connector_bodies.openai("http://127.0.0.1:1"))
    created = ml.create_controller(model_id=model_id, body={"user_rate_limiter": {"u": LIMIT}})
    assert created == {"model_id": model_id, "status": "CREATED"}
    ml.update_controller(model_id=model_id, body={"user_rate_limiter": {"u": {"limit": 9}}})
    expected = {"model_id": model_id, "user_rate_limiter": {"u": {**LIMIT, "limit": "9"}}}
    assert ml.get_controller(model_id=model_id) == expected
    assert ml.delete_controller(model_id=model_id)["result"] == "deleted"
    with pytest.raises(NotFoundError):
        ml.get_controller(model_id=model_id)


async def test_profile_and_stats_are_read_from_every_kind_of_store(store: Store, tmp_path: Path) -> None:
    registry, states = open_test_registry(store), DeploymentStateStore(store, now_millis)
    connector = await registry.connectors.create(ANYONE, CONNECTOR)
    model = {"name": "m", "function_name": "remote", "connector_id": connector["connector_id"]}
    model_id = (await registry.models.register(ANYONE, model, deploy=True))["model_id"]
    await registry.models.register(ANYONE, model)
    await registry.controllers.create(ANYONE, model_id, {"user_rate_limiter": {"u": LIMIT}})
    with open_statistics(tmp_path) as statistics:
        node = ServerNode(store, now_millis, "server")
        visible = VisibleDocuments.of(store, LiveSettings(Settings()))
        with Observations(Metrics(), statistics).whole(ANYONE) as observed:
            observed.set_model(model_id)
        profile = await Profiles(states, statistics, node, visible).get(
            ANYONE, {"return_all_models": True}, view="node"
        )
        stats = await ServerStats(store, states, statistics, node, visible).named(ANYONE, [], [])
    assert only_node(profile)["models"].keys() == only_node(stats)["models"].keys() == {model_id}
    assert only_node(stats)["ml_deployed_model_count"] == 1
    counts = {name: stats[name] for name in ("ml_model_count", "ml_connector_count")}
    assert counts == {"ml_model_count": 2, "ml_connector_count": 1}
    statuses = {name: value for name, value in stats.items() if name.endswith("_index_status")}
    assert statuses.keys() <= LACKING
    assert bool(statuses) is not isinstance(store, SQLiteStore)
    assert set(statuses.values()) <= {"green", "yellow", "red"}


# What opensearch-py-ml 1.3 sends: MLCommonClient.get_*_profile and get_stats, each with its URL and body.
PY_ML_REQUESTS: list[tuple[str, dict[str, Any] | None]] = [
    ("/_plugins/_ml/profile", None),
    ("/_plugins/_ml/profile", {"node_ids": ["_all"], "return_all_models": True}),
    ("/_plugins/_ml/profile/models/", None),
    ("/_plugins/_ml/profile/models/MODEL", None),
    ("/_plugins/_ml/profile/models/MODEL", {"model_ids": ["MODEL"], "return_all_tasks": True}),
]
PY_ML_STATS = ["/_plugins/_ml/stats", "/_plugins/_ml/stats/ml_request_count", "/_plugins/_ml/_all/stats"]


@pytest.mark.parametrize(("path", "body"), PY_ML_REQUESTS)
def test_the_profile_requests_of_opensearch_py_ml_find_the_model(
    sidecar: Sidecar, client: OpenSearch, path: str, body: dict[str, Any] | None
) -> None:
    model_id = sidecar.create_model(connector_bodies.openai("http://127.0.0.1:1"))
    sidecar.post(f"/models/{model_id}/_deploy", {})
    sent = json.loads(json.dumps(body).replace("MODEL", model_id))
    response = client.transport.perform_request("GET", path.replace("MODEL", model_id), body=sent)
    assert model_id in only_node(response)["models"]
    assert client.transport.perform_request("GET", "/_plugins/_ml/profile/tasks/") == {}


@pytest.mark.parametrize("path", PY_ML_STATS)
def test_the_stats_requests_of_opensearch_py_ml_are_answered(client: OpenSearch, path: str) -> None:
    assert "ml_request_count" in only_node(client.transport.perform_request("GET", path))


def test_the_master_key_cannot_be_had_as_a_config(sidecar: Sidecar) -> None:
    sidecar.create_model(connector_bodies.openai("http://127.0.0.1:1"))  # its credential made the key
    for config_id, status in (("master_key", 400), ("nope", 404), ("opensearch_ml_stream_node", 200)):
        response = sidecar.client.get(f"/_plugins/_ml/config/{config_id}")
        assert response.status_code == status
    assert response.json() == {
        "config_type": "opensearch_ml_stream_node",
        "create_time": response.json()["create_time"],
        "ml_configuration": {},
    }


async def test_two_workers_answer_with_one_sum_and_forget_a_deleted_model(tmp_path: Path) -> None:
    def reply(request: Request) -> Sequence[Step]:
        return [*openai_stream(["a"])[:3], Act.WAIT] if b"wait" in request.body else openai_stream(["a", "b"])

    with running_sidecar(tmp_path, arguments=("--workers", "2")) as sidecar:
        async with FakeProvider(reply) as provider:
            model_id = await asyncio.to_thread(
                sidecar.create_model,
                connector_bodies.openai(provider.url),
                rate_limiter={"limit": "32", "unit": "HOURS"},
            )
            base = f"{sidecar.url}/_plugins/_ml"

            async def on_new_connection(method: str, path: str, body: Any = None) -> httpx.Response:
                async with httpx.AsyncClient(timeout=30, verify=False) as http:  # so that the kernel spreads them
                    return await http.request(method, base + path, json=body)

            async def wait() -> None:
                await on_new_connection(
                    "POST", f"/models/{model_id}/_predict/stream", {"parameters": {"inputs": "wait"}}
                )

            waiting = [asyncio.create_task(wait()) for _ in range(8)]
            await eventually_async(lambda: len(provider.requests) == 8)
            path = f"/models/{model_id}/_predict/stream"
            statuses = [(await on_new_connection("POST", path, QUESTION)).status_code for _ in range(30)]
            assert statuses == [200] * 24 + [429] * 6
            for _ in range(6):
                profile = only_node((await on_new_connection("GET", "/profile")).json())
                model = profile["models"][model_id]
                assert len(profile["tasks"]) == 8
                assert (model["predict_request_stats"]["count"], model["throttled_request_count"]) == (30, 6)
                assert model["model_inference_stats"]["count"] == 24
                stats = only_node((await on_new_connection("GET", "/stats")).json())
                assert (stats["ml_executing_task_count"], stats["ml_deployed_model_count"]) == (8, 1)
                predictions = {"ml_action_request_count": 30, "ml_action_failure_count": 6}
                assert stats["models"][model_id]["predict"] == predictions
                assert stats["algorithms"]["remote"]["predict"] == predictions
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            for method, path in (("POST", f"/models/{model_id}/_undeploy"), ("DELETE", f"/models/{model_id}")):
                assert (await on_new_connection(method, path)).status_code == 200
            for _ in range(6):
                stats = only_node((await on_new_connection("GET", "/stats")).json())
                assert (stats["ml_deployed_model_count"], stats["models"]) == (0, {})
                assert "models" not in (await on_new_connection("GET", "/profile")).json().get("nodes", {})
