"""Models are loaded at the start, through the API, and as their folder changes; what is wrong is told."""

import shutil
from pathlib import Path

import httpx
import pytest
from integration_tests.server.runtimes.model_folder import write_model
from integration_tests.server.runtimes.runtime_server import RuntimeServer, serving_models
from integration_tests.support.conditions import eventually
from integration_tests.support.worker_processes import runs


def test_a_model_is_undeployed_and_deployed_through_the_api(server: RuntimeServer) -> None:
    process = server.pid("undeployed")
    response = server.post("/models/runtime-undeployed/_undeploy")
    assert [node["stats"] for node in response.json().values()] == [{"runtime-undeployed": "undeployed"}]
    assert not runs(process)
    assert server.state("undeployed") == "UNDEPLOYED"
    assert server.post("/models/runtime-undeployed/_deploy").json()["status"] == "COMPLETED"
    assert server.pid("undeployed") not in (0, process)


def test_a_prediction_deploys_an_undeployed_model(server: RuntimeServer) -> None:
    server.post("/models/runtime-predicted/_undeploy")
    assert server.said("predicted") == "hello"
    assert server.state("predicted") == "DEPLOYED"


def test_the_repository_of_v2_unloads_and_loads(server: RuntimeServer) -> None:
    process = server.pid("reloaded")
    client = server.sidecar.client
    assert client.post("/v2/repository/models/reloaded/unload").status_code == 200
    assert not runs(process)
    assert client.post("/v2/repository/models/reloaded/load").status_code == 200
    assert server.said("reloaded") == "hello"


def test_load_reads_the_files_again_and_finds_a_new_folder(tmp_path: Path, models: Path) -> None:
    """The code, the settings and what had failed, of a folder that nobody watches."""
    write_model(models, "repaired", implementation="nowhere.Model")
    with serving_models(tmp_path, models) as server:

        def load(name: str) -> httpx.Response:
            return server.sidecar.client.post(f"/v2/repository/models/{name}/load")

        server.wait_for("echo")
        server.wait_for("repaired", "DEPLOY_FAILED")
        first = server.pid()
        assert load("echo").status_code == 200
        assert server.pid() == first  # nothing has changed
        write_model(models, "echo", "changed", platform="other")
        assert load("echo").status_code == 200
        assert server.said() == "changed"
        assert server.sidecar.client.get("/v2/models/echo").json()["platform"] == "other"

        (models / "echo" / "model.py").write_text("import nowhere")
        refused = load("echo")
        assert refused.status_code == 424 and "No module named 'nowhere'" in refused.text
        assert "It goes on as before" in refused.text and server.said() == "changed"

        assert load("repaired").status_code == 424
        write_model(models, "repaired", "repaired")
        assert load("repaired").status_code == 200
        assert server.said("repaired") == "repaired"

        assert load("new").status_code == 404
        write_model(models, "new", "new")
        assert load("new").status_code == 200
        assert server.said("new") == "new"


def test_a_deleted_model_is_gone_until_the_next_start(server: RuntimeServer) -> None:
    process = server.pid("deleted")
    assert server.sidecar.client.delete("/_plugins/_ml/models/runtime-deleted").status_code == 400  # it is deployed
    server.post("/models/runtime-deleted/_undeploy")
    assert server.sidecar.client.delete("/_plugins/_ml/models/runtime-deleted").json()["result"] == "deleted"
    assert not runs(process)
    assert server.predict("deleted").status_code == 404


def test_a_model_that_cannot_be_loaded_fails_alone_and_says_why(server: RuntimeServer) -> None:
    server.wait_for("broken", "DEPLOY_FAILED")
    response = server.post("/models/runtime-broken/_deploy")
    assert response.status_code == 424
    assert "No module named 'nowhere'" in response.text
    listed = server.sidecar.client.post("/v2/repository/index", json={}).json()
    index = {model["name"]: model for model in listed}
    assert index["echo"]["state"] == "READY"
    assert index["broken"]["state"] != "READY" and "No module named 'nowhere'" in index["broken"]["reason"]
    assert "unreadable/model-settings.json is not JSON at line 1, column 10" in server.log
    assert server.said() == "hello"


def test_the_folder_is_watched_where_that_is_asked(server: RuntimeServer) -> None:
    first = server.pid("changing")
    write_model(server.models, "changing", "changed")
    write_model(server.models, "new", "new")
    eventually(lambda: server.said("changing") == "changed")
    eventually(lambda: not runs(first))
    server.wait_for("new")
    assert server.said("new") == "new"
    process = server.pid("new")
    shutil.rmtree(server.models / "new")
    (server.models / "changing" / "model.py").write_text("import nowhere")
    server.wait_for("new", "UNDEPLOYED")
    assert not runs(process)
    eventually(lambda: "what changed cannot be loaded, so it goes on as before" in server.log)
    assert server.said("changing") == "changed"


def test_at_the_next_start_what_users_changed_stays_and_what_went_is_undeployed(tmp_path: Path, models: Path) -> None:
    """And nothing is loaded where the settings say so."""
    write_model(models, "other")
    with serving_models(tmp_path, models) as server:
        server.wait_for("echo")
        server.wait_for("other")
        path = "/_plugins/_ml/models/runtime-echo"
        assert server.sidecar.client.put(path, json={"description": "ours", "name": "renamed"}).status_code == 200
    shutil.rmtree(models / "other")
    (models / "settings.json").write_text('{"load_models_at_startup": false, "gzip_enabled": false}')
    with serving_models(tmp_path, models) as server:
        server.wait_for("echo", "UNDEPLOYED")
        server.wait_for("other", "UNDEPLOYED")
        assert (server.model("echo")["name"], server.model("echo")["description"]) == ("echo", "ours")
        assert "loading in" not in server.log
        assert "settings of MLServer that are not needed here: gzip_enabled (" in server.log
        assert server.said() == "hello"


def test_a_server_without_any_model_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="does not exist"), serving_models(tmp_path, tmp_path / "none"):
        pass
