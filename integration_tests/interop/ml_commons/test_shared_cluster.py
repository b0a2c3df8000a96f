"""What else the two share: the cluster's settings, pipelines and agents, and what one of them leaves behind."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from integration_tests.interop.ml_commons.sides import Side, reason
from integration_tests.support.conditions import eventually
from integration_tests.support.sidecars import running_sidecar

from opensearch_ml_stream.plugin.registry.cleanup import delete_orphans
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.open_store import open_store

pytestmark = pytest.mark.ml_commons

FOLLOWED_WITHIN_SECONDS = 5
PREFIX = "plugins.ml_commons."


@contextmanager
def cluster_settings(sidecar: Side, ml_commons: Side, level: str, **values: object) -> Iterator[None]:
    """Settings of the cluster, `__` for a dot in a name, reset at the end; the sidecar follows both."""

    def put(settings: Mapping[str, object]) -> None:
        ml_commons.client.put("/_cluster/settings", json={level: settings}).raise_for_status()

    named = {PREFIX + name.replace("__", "."): value for name, value in values.items()}
    before = in_force(sidecar)
    put(named)
    try:
        expected = {name: str(value).lower() for name, value in named.items()}
        eventually(lambda: expected.items() <= in_force(sidecar).items(), FOLLOWED_WITHIN_SECONDS)
        yield
    finally:
        put(dict.fromkeys(named))
        eventually(lambda: in_force(sidecar) == before, FOLLOWED_WITHIN_SECONDS)


def in_force(sidecar: Side) -> dict[str, Any]:
    """The settings that were not changed at the sidecar."""
    shown = sidecar.ask("GET", "/_settings?include_defaults=true&flat_settings=true")
    return dict(shown["defaults"])


@pytest.mark.parametrize("level", ["persistent", "transient"])
def test_remote_inference_that_is_switched_off_in_the_cluster_is_off_in_the_sidecar(
    sidecar: Side, ml_commons: Side, connector: dict[str, Any], level: str
) -> None:
    model_id = sidecar.create_model(connector)
    with cluster_settings(sidecar, ml_commons, level, remote_inference__enabled=False):
        assert "Remote Inference is currently disabled" in reason(sidecar.predict(model_id), 400)
        assert "Remote Inference is currently disabled" in reason(ml_commons.predict(model_id), 404)
    assert sidecar.predict(model_id).status_code == 200


def test_what_is_set_at_the_sidecar_alone_beats_the_clusters_settings(
    sidecar: Side, ml_commons: Side, connector: dict[str, Any]
) -> None:
    model_id = sidecar.create_model(connector)
    name = PREFIX + "model_auto_deploy.enable"
    with cluster_settings(sidecar, ml_commons, "persistent", model_auto_deploy__enable=False):
        assert "deploy the model first" in reason(sidecar.predict(model_id), 400)
        sidecar.ask("PUT", "/_settings", {"persistent": {name: True}})
        assert sidecar.predict(model_id).status_code == 200
        sidecar.ask("PUT", "/_settings", {"persistent": {name: None}})


def pipeline(kind: str, model_id: str) -> dict[str, Any]:
    processor = {"model_id": model_id, "input_map": [{"a": "b"}], "output_map": [{"c": "d"}]}
    where = "processors" if kind == "ingest" else "response_processors"
    return {where: [{"ml_inference": processor}]}


@pytest.fixture
def unsafe_name(ml_commons: Side) -> Iterator[str]:
    name = f"beside-{uuid4()}"
    yield name
    for kind in ("ingest", "search"):
        ml_commons.client.delete(f"/_{kind}/pipeline/{name}")


@pytest.mark.parametrize("kind", ["ingest", "search"])
def test_a_safe_deletion_of_a_model_that_a_pipeline_uses_is_refused_as_ml_commons_does(
    sidecar: Side, ml_commons: Side, connector: dict[str, Any], unsafe_name: str, kind: str
) -> None:
    model_id = sidecar.create_model(connector)
    ml_commons.client.put(f"/_{kind}/pipeline/{unsafe_name}", json=pipeline(kind, model_id)).raise_for_status()
    with cluster_settings(sidecar, ml_commons, "persistent", safe_delete_model=True):
        refused = [side.call("DELETE", f"/models/{model_id}") for side in (sidecar, ml_commons)]
        assert [response.status_code for response in refused] == [409, 409]
        assert refused[0].json() == refused[1].json()
        assert f"1 {kind} pipelines are still using this model" in refused[0].text
        ml_commons.client.delete(f"/_{kind}/pipeline/{unsafe_name}").raise_for_status()
        assert sidecar.ask("DELETE", f"/models/{model_id}")["result"] == "deleted"


def test_a_safe_deletion_of_a_model_that_an_agent_uses_is_refused_as_ml_commons_does(
    sidecar: Side, ml_commons: Side, connector: dict[str, Any]
) -> None:
    model_id = sidecar.create_model(connector)
    tool = {"type": "MLModelTool", "parameters": {"model_id": model_id, "prompt": "p"}}
    agent = ml_commons.ask("POST", "/agents/_register", {"name": "beside", "type": "flow", "tools": [tool]})
    with cluster_settings(sidecar, ml_commons, "transient", safe_delete_model=True):
        eventually(lambda: ml_commons.call("DELETE", f"/models/{model_id}").status_code == 409)
        refused = [side.call("DELETE", f"/models/{model_id}") for side in (sidecar, ml_commons)]
        assert refused[0].status_code == 409 and refused[0].json() == refused[1].json()
    ml_commons.ask("DELETE", f"/agents/{agent['agent_id']}")
    assert sidecar.ask("DELETE", f"/models/{model_id}")["result"] == "deleted"


def test_a_safe_deletion_counts_the_model_that_an_agent_talks_with(
    sidecar: Side, ml_commons: Side, connector: dict[str, Any]
) -> None:
    model_id = sidecar.create_model(connector)
    agent = {"name": "beside", "type": "conversational", "llm": {"model_id": model_id},
             "memory": {"type": "conversation_index"}, "tools": [{"type": "ListIndexTool"}]}  # fmt: skip
    agent_id = ml_commons.ask("POST", "/agents/_register", agent)["agent_id"]
    with cluster_settings(sidecar, ml_commons, "transient", safe_delete_model=True):
        eventually(lambda: sidecar.call("DELETE", f"/models/{model_id}").status_code == 409)
    ml_commons.ask("DELETE", f"/agents/{agent_id}")
    assert sidecar.ask("DELETE", f"/models/{model_id}")["result"] == "deleted"


async def test_what_ml_commons_leaves_behind_of_a_model_that_it_deletes_is_swept_up(
    sidecar: Side, ml_commons: Side, ml_commons_url: str, connector: dict[str, Any]
) -> None:
    kept, gone = sidecar.create_model(connector), sidecar.create_model(connector)
    for model_id in (kept, gone):
        sidecar.deploy(model_id)
    ml_commons.ask("DELETE", f"/models/{gone}")
    async with open_store(ml_commons_url) as store:
        assert await store.get(Index.DEPLOYMENT, gone) is not None
        assert await delete_orphans(store) >= 1
        assert await store.get(Index.DEPLOYMENT, gone) is None
        assert await store.get(Index.DEPLOYMENT, kept) is not None
        assert await delete_orphans(store) == 0


def test_the_sidecars_log_holds_no_warning_of_the_clusters_client(
    ml_commons_url: str, connector: dict[str, Any], tmp_path: Path
) -> None:
    """Neither of names that begin with a dot, nor of indices that are ML Commons' own."""
    with running_sidecar(tmp_path, ml_commons_url) as running:
        side = Side("sidecar", running.client)
        model_id = side.create_model(connector)
        side.deploy(model_id)
        assert side.predicted(model_id)["choices"]
        log = running.log.read_text()
    assert "listening on" in log and "arning" not in log and "system indices" not in log
