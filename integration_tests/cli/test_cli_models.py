"""`models create|list|show|delete` against a scripted sidecar."""

import json
from pathlib import Path

import pytest
from integration_tests.cli.commands import Run, routes, run_here
from integration_tests.support.background_provider import background_provider


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return run_here(monkeypatch, capsys)


def test_a_model_is_made_from_a_blueprint_with_a_key_from_the_environment(run: Run) -> None:
    known = {
        ("POST", "/connectors/_create"): {"connector_id": "c1"},
        ("POST", "/models/_register"): {"task_id": "t", "status": "CREATED", "model_id": "m1"},
    }
    arguments = ["--set", "model=gpt-4o", "--credential", "openAI_key=env:THE_KEY", "--name", "mine"]
    with background_provider(routes(known)) as server:
        shown = run(
            *("models", "create", "--blueprint", "openai-chat"), *arguments, "--url", server.url, THE_KEY="sk=secret"
        )
    assert (shown.returncode, shown.stdout) == (0, "m1\n")
    assert "sk=secret" not in shown.stderr
    connector, model = (request.json() for request in server.requests)
    assert connector["credential"] == {"openAI_key": "sk=secret"}
    assert (connector["parameters"]["model"], connector["name"]) == ("gpt-4o", "mine")
    assert (model["connector_id"], model["name"], model["function_name"]) == ("c1", "mine", "remote")


def test_a_key_may_come_from_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-file\n")
    with background_provider(routes({})) as server:
        shown = run(
            *("models", "create", "--blueprint", "openai-chat", "--credential", f"openAI_key=file:{tmp_path}/key"),
            *("--url", server.url),
        )
    assert shown.returncode == 1
    assert server.requests[0].json()["credential"] == {"openAI_key": "sk-file"}


def test_a_connector_whose_model_cannot_be_made_is_taken_back(run: Run) -> None:
    known = {("POST", "/connectors/_create"): {"connector_id": "c1"}, ("DELETE", "/connectors/c1"): {}}
    with background_provider(routes(known)) as server:
        shown = run(
            "models", "create", "--blueprint", "openai-chat", "--credential", "openAI_key=k", "--url", server.url
        )
    assert shown.returncode == 1
    assert (server.requests[-1].method, server.requests[-1].path) == ("DELETE", "/_plugins/_ml/connectors/c1")


def test_models_are_listed_one_a_line_behind_a_pipe(run: Run) -> None:
    hits = [
        {"_id": "2", "_source": {"name": "b [x]", "model_state": "DEPLOYED"}},
        {"_id": "1", "_source": {"name": "a", "model_state": "REGISTERED"}},
    ]
    with background_provider(routes({("POST", "/models/_search"): {"hits": {"hits": hits}}})) as server:
        shown = run("models", "list", "--url", server.url, "--user", "me:pass:word")
    assert shown.stdout == "1\ta\tREGISTERED\n2\tb [x]\tDEPLOYED\n"
    assert server.requests[0].headers["authorization"] == "Basic bWU6cGFzczp3b3Jk"


def test_a_model_is_shown_with_its_connector(run: Run) -> None:
    known = {
        ("GET", "/models/m%2F1"): {"name": "m", "connector_id": "c1"},
        ("GET", "/connectors/c1"): {"name": "c", "parameters": {}},
    }
    with background_provider(routes(known)) as server:
        shown = json.loads(run("models", "show", "m/1", "--url", server.url).stdout)
    assert shown == {"name": "m", "connector_id": "c1", "connector": {"name": "c", "parameters": {}}}


def test_a_model_is_undeployed_and_deleted_and_its_connector_kept_unless_asked(run: Run) -> None:
    known = {
        ("GET", "/models/m1"): {"name": "m", "connector_id": "c1"},
        ("POST", "/models/m1/_undeploy"): {},
        ("DELETE", "/models/m1"): {"result": "deleted"},
        ("DELETE", "/connectors/c1"): {"result": "deleted"},
    }
    with background_provider(routes(known)) as server:
        assert run("models", "delete", "m1", "--url", server.url).stdout == "deleted model m1\n"
        kept = len(server.requests)
        shown = run("models", "delete", "m1", "--with-connector", "--url", server.url)
        assert shown.stdout == "deleted model m1\ndeleted connector c1\n"
    assert [request.method for request in server.requests] == ["GET", "POST", "DELETE"] * 2 + ["DELETE"]
    assert kept == 3
