"""Models are loaded at the start, through the API, and as their folder changes; what is wrong is told."""

import shutil
from pathlib import Path

import pytest
from integration_tests.server.runtimes.model_folder import write_model
from integration_tests.server.runtimes.runtime_server import RuntimeServer, exists, serving_models
from integration_tests.support.conditions import eventually


def test_a_model_is_undeployed_and_deployed_through_the_api(server: RuntimeServer) -> None:
    process = server.pid()
    response = server.post("/models/runtime-echo/_undeploy")
    assert [node["stats"] for node in response.json().values()] == [{"runtime-echo": "undeployed"}]
    assert not exists(process)
    assert server.state("echo") == "UNDEPLOYED"
    assert server.post("/models/runtime-echo/_deploy").json()["status"] == "COMPLETED"
    assert server.pid() not in (0, process)


def test_a_prediction_deploys_an_undeployed_model(server: RuntimeServer) -> None:
    server.post("/models/runtime-echo/_undeploy")
    assert server.said() == "hello"
    assert server.state("echo") == "DEPLOYED"


def test_the_repository_of_v2_unloads_and_loads(server: RuntimeServer) -> None:
    process = server.pid()
    client = server.sidecar.client
    assert client.post("/v2/repository/models/echo/unload").status_code == 200
    assert not exists(process)
    assert client.post("/v2/repository/models/echo/load").status_code == 200
    assert server.said() == "hello"


def test_a_deleted_model_is_gone_until_the_next_start(server: RuntimeServer) -> None:
    process = server.pid()
    assert server.sidecar.client.delete("/_plugins/_ml/models/runtime-echo").status_code == 400  # it is deployed
    server.post("/models/runtime-echo/_undeploy")
    assert server.sidecar.client.delete("/_plugins/_ml/models/runtime-echo").json()["result"] == "deleted"
    assert not exists(process)
    assert server.predict().status_code == 404


def test_what_users_changed_in_a_document_stays(tmp_path: Path, models: Path) -> None:
    with serving_models(tmp_path, models) as server:
        server.wait_for("echo")
        changes = {"description": "ours", "is_enabled": False, "name": "renamed"}
        path = "/_plugins/_ml/models/runtime-echo"
        assert server.sidecar.client.put(path, json=changes).status_code == 200
    with serving_models(tmp_path, models) as server:
        eventually(lambda: server.model("echo")["name"] == "echo")
        assert (server.model("echo")["description"], server.model("echo")["is_enabled"]) == ("ours", False)


def test_a_model_that_cannot_be_imported_fails_alone_and_says_why(tmp_path: Path, models: Path) -> None:
    write_model(models, "broken", implementation="nowhere.Model")
    write_model(models, "unreadable")
    (models / "unreadable" / "model-settings.json").write_text('{"name": ')
    with serving_models(tmp_path, models) as server:
        server.wait_for("echo")
        server.wait_for("broken", "DEPLOY_FAILED")
        response = server.post("/models/runtime-broken/_deploy")
        assert response.status_code == 424
        assert "No module named 'nowhere'" in response.text
        assert server.said() == "hello"
        assert f"{models}/unreadable/model-settings.json is not JSON at line 1, column 10" in server.log


def test_models_are_not_loaded_at_start_where_the_settings_say_so(tmp_path: Path, models: Path) -> None:
    (models / "settings.json").write_text('{"load_models_at_startup": false, "gzip_enabled": false}')
    with serving_models(tmp_path, models) as server:
        server.wait_for("echo", "UNDEPLOYED")
        assert "loading in" not in server.log
        assert "settings of MLServer that are not needed here: gzip_enabled (" in server.log
        assert server.said() == "hello"


def test_the_folder_is_watched_where_that_is_asked(tmp_path: Path, models: Path) -> None:
    with serving_models(tmp_path, models, "--models-watch") as server:
        server.wait_for("echo")
        first = server.pid()
        write_model(models, "echo", "changed")
        eventually(lambda: server.said() == "changed")
        eventually(lambda: not exists(first))
        write_model(models, "new", "new")
        server.wait_for("new")
        assert server.said("new") == "new"
        process = server.pid("new")
        shutil.rmtree(models / "new")
        server.wait_for("new", "UNDEPLOYED")
        assert not exists(process)


def test_a_change_that_cannot_be_loaded_leaves_the_model_as_it_was(tmp_path: Path, models: Path) -> None:
    with serving_models(tmp_path, models, "--models-watch") as server:
        server.wait_for("echo")
        (models / "echo" / "model.py").write_text("import nowhere")
        eventually(lambda: "what changed cannot be loaded, so it goes on as before" in server.log)
        assert server.said() == "hello"


def test_a_model_whose_folder_went_while_the_server_was_stopped_is_undeployed(tmp_path: Path, models: Path) -> None:
    write_model(models, "other")
    with serving_models(tmp_path, models) as server:
        server.wait_for("other")
    shutil.rmtree(models / "other")
    with serving_models(tmp_path, models) as server:
        server.wait_for("other", "UNDEPLOYED")


@pytest.mark.parametrize(("made", "message"), [(False, "does not exist"), (True, "has no model")])
def test_a_server_without_any_model_does_not_start(tmp_path: Path, made: bool, message: str) -> None:
    folder = tmp_path / "none"
    if made:
        folder.mkdir()
    with pytest.raises(AssertionError, match=message), serving_models(tmp_path, folder):
        pass
