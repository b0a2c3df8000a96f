"""A sidecar before a real ML Commons: local models, agents and tools are the cluster's, remote models the sidecar's."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.sidecars import Sidecar, running_sidecar

pytestmark = pytest.mark.ml_commons

BASE = "/_plugins/_ml"
POINTS = {
    "column_metas": [{"name": "x", "column_type": "DOUBLE"}, {"name": "y", "column_type": "DOUBLE"}],
    "rows": [
        {"values": [{"column_type": "DOUBLE", "value": value}, {"column_type": "DOUBLE", "value": value}]}
        for value in (1.0, 1.1, 9.0, 9.1)
    ],
}
TRAINING = {"parameters": {"centroids": 2, "iterations": 5, "distance_type": "EUCLIDEAN"}, "input_data": POINTS}


@dataclass(frozen=True)
class Both:
    """The cluster seen directly, and through the front door."""

    direct: httpx.Client
    door: httpx.Client
    sidecar: Sidecar

    def same(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        """The response through the door, which is that of the cluster."""
        there, here = (client.request(method, path, json=body) for client in (self.direct, self.door))
        assert (here.status_code, here.headers["content-type"]) == (there.status_code, there.headers["content-type"])
        assert here.text == there.text
        return here


@pytest.fixture(scope="module")
def both(ml_commons_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("door")
    with (
        running_sidecar(folder, ml_commons_url, arguments=("--pass-through",)) as sidecar,
        httpx.Client(base_url=ml_commons_url, timeout=60) as direct,
        httpx.Client(base_url=sidecar.url, timeout=60) as door,
    ):
        yield Both(direct, door, sidecar)


@pytest.fixture(scope="module")
def local_model(both: Both) -> str:
    """The id of a model that was trained in the cluster."""
    trained = both.door.post(f"{BASE}/_train/kmeans", json=TRAINING)
    assert (trained.status_code, trained.json()["status"]) == (200, "COMPLETED"), trained.text
    return str(trained.json()["model_id"])


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/", None),
        ("GET", f"{BASE}/tools", None),
        ("GET", f"{BASE}/tools/ListIndexTool", None),
        ("GET", f"{BASE}/agents/none-such", None),
        ("GET", f"{BASE}/memory/none-such", None),
        ("POST", f"{BASE}/agents/none-such/_execute", {"parameters": {}}),
        ("POST", f"{BASE}/models/_register", {"name": "m", "function_name": "TEXT_EMBEDDING"}),
        ("POST", f"{BASE}/models/_register", {"name": "m", "function_name": "no-such"}),
        ("POST", f"{BASE}/models/_register", {"name": "m", "version": "1.0.0"}),
        ("POST", f"{BASE}/models/meta", {"name": "m"}),
        ("HEAD", f"{BASE}/models/none-such", None),
        ("GET", "/_plugins/_none", None),
        ("PUT", "/_Wrong", {}),
    ],
)
def test_what_only_ml_commons_has_is_answered_by_it(
    both: Both, method: str, path: str, body: Mapping[str, Any] | None
) -> None:
    both.same(method, path, body)


def test_a_local_model_is_predicted_in_the_cluster(both: Both, local_model: str) -> None:
    predicted = both.same("POST", f"{BASE}/_predict/kmeans/{local_model}", {"input_data": POINTS})
    assert predicted.json()["status"] == "COMPLETED"
    assert both.door.get(f"{BASE}/models/{local_model}").json()["algorithm"] == "KMEANS"
    both.same("PUT", f"{BASE}/models/{local_model}", {"name": "renamed"})
    both.same("POST", f"{BASE}/models/_undeploy", {"model_ids": [local_model]})


def test_a_remote_model_is_the_sidecars(both: Both, local_model: str) -> None:
    with background_provider(openai_stream(["For", "ty-two"])) as provider:
        model_id = both.sidecar.create_model(openai(provider.url))
        streamed = both.door.post(f"{BASE}/models/{model_id}/_predict/stream", json={"parameters": {"inputs": "Why?"}})
        assert streamed.headers["content-type"] == "application/x-ndjson"
        assert '"finish_reason":"stop"' in streamed.text
        mixed = both.door.post(f"{BASE}/models/_undeploy", json={"model_ids": [model_id, local_model]})
        assert (mixed.status_code, "in two requests" in mixed.text) == (400, True)
        undeployed = both.door.post(f"{BASE}/models/_undeploy", json={"model_ids": [model_id]})
        assert [list(node["stats"]) for node in undeployed.json().values()] == [[model_id]]
        assert both.door.delete(f"{BASE}/models/{model_id}").status_code == 200


def test_profile_and_stats_have_the_nodes_of_both(both: Both, local_model: str) -> None:
    both.door.post(f"{BASE}/_predict/kmeans/{local_model}", json={"input_data": POINTS}).raise_for_status()
    (cluster_node,) = both.direct.get("/_nodes").json()["nodes"]
    stats = both.door.get(f"{BASE}/stats").json()
    assert len(stats["nodes"]) == 2
    assert stats["nodes"][cluster_node]["algorithms"]["kmeans"]
    (own_node,) = stats["nodes"].keys() - {cluster_node}
    assert stats["nodes"][own_node]["server"]
    assert both.door.get(f"{BASE}/{cluster_node}/stats").json()["nodes"].keys() == {cluster_node}
    assert both.door.get(f"{BASE}/{own_node}/stats").json()["nodes"].keys() == {own_node}
    with background_provider(openai_stream(["ok"])) as provider:
        model_id = both.sidecar.create_model(openai(provider.url))
        both.door.post(f"{BASE}/models/{model_id}/_predict/stream", json={"parameters": {"inputs": "Why?"}})
        profile = both.door.get(f"{BASE}/profile/models/{model_id}").json()
        assert profile["nodes"][own_node]["models"].keys() == {model_id}
    both.direct.delete(f"{BASE}/models/{model_id}")


def test_a_local_model_is_deleted_in_the_cluster(both: Both) -> None:
    model_id = both.door.post(f"{BASE}/_train/kmeans", json=TRAINING).json()["model_id"]
    assert both.door.delete(f"{BASE}/models/{model_id}").json()["result"] == "deleted"
    assert both.direct.get(f"{BASE}/models/{model_id}").status_code == 404
