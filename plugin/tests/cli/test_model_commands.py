"""`models create|list|show|delete` against a sidecar in memory."""

import json
from pathlib import Path

import httpx
import pytest

from tests.cli.conftest import Run
from tests.cli.in_memory_sidecar import InMemorySidecar

CREATE = ("models", "create", "--blueprint", "openai-chat")
DELETABLE = {
    ("GET", "/models/m1"): {"name": "m", "connector_id": "c1"},
    ("POST", "/models/m1/_undeploy"): {},
    ("DELETE", "/models/m1"): {"result": "deleted"},
    ("DELETE", "/connectors/c1"): {"result": "deleted"},
}


def test_a_model_is_made_from_a_blueprint_with_a_key_from_the_environment(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.responses = {
        ("POST", "/connectors/_create"): {"connector_id": "c1"},
        ("POST", "/models/_register"): {"task_id": "t", "status": "CREATED", "model_id": "m1"},
    }
    options = ("--set", "model=gpt-4o", "--credential", "openAI_key=env:THE_KEY", "--name", "mine")
    ended = run(*CREATE, *options, THE_KEY="sk=secret")
    assert (ended.code, ended.stdout) == (0, "m1\n")
    assert ended.stderr == "Try it: opensearch-ml-stream predict m1 --stream Hello\n"
    elsewhere = run(*CREATE, *options, "--url", "http://h:1", THE_KEY="sk=secret")
    assert elsewhere.stderr.endswith("predict m1 --stream Hello --url http://h:1\n")
    assert "sk=secret" not in ended.stderr
    connector, model = sidecar.sent(0), sidecar.sent(1)
    assert connector["credential"] == {"openAI_key": "sk=secret"}
    assert (connector["parameters"]["model"], connector["name"]) == ("gpt-4o", "mine")
    assert (model["connector_id"], model["name"], model["function_name"]) == ("c1", "mine", "remote")


def test_what_a_connector_leaves_to_be_filled_in_is_shown_beside_the_models_id(
    run: Run, sidecar: InMemorySidecar
) -> None:
    warnings = ["[parameters.endpoint] is not filled in: <YOUR RESOURCE NAME>"]
    sidecar.responses = {
        ("POST", "/connectors/_create"): {"connector_id": "c1", "warnings": warnings},
        ("POST", "/models/_register"): {"task_id": "t", "status": "CREATED", "model_id": "m1"},
    }
    ended = run(*CREATE, "--credential", "openAI_key=k")
    assert (ended.code, ended.stdout) == (0, "m1\n")
    assert ended.stderr.startswith(f"Warning: {warnings[0]}\n")


@pytest.mark.parametrize(
    ("blueprint", "trial"),
    [("openai-embedding", "Try it: opensearch-ml-stream embed m1 Hello\n"), ("cohere-rerank", "")],
)
def test_the_trial_that_is_proposed_is_one_for_such_a_model(
    run: Run, sidecar: InMemorySidecar, blueprint: str, trial: str
) -> None:
    sidecar.responses = {
        ("POST", "/connectors/_create"): {"connector_id": "c1"},
        ("POST", "/models/_register"): {"model_id": "m1"},
    }
    key = "openAI_key" if blueprint.startswith("openai") else "cohere_key"
    ended = run("models", "create", "--blueprint", blueprint, "--credential", f"{key}=k")
    assert (ended.code, ended.stderr) == (0, trial)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("modle", "openai-chat has no parameter [modle]; did you mean [model]?"),
     ("xyz", "openai-chat has no parameter [xyz]; it takes endpoint, inputs, max_completion_tokens,")],
)  # fmt: skip
def test_a_parameter_that_the_blueprint_does_not_have_is_refused(run: Run, name: str, reason: str) -> None:
    ended = run(*CREATE, "--set", f"{name}=gpt-4o", "--credential", "openAI_key=k")
    assert ended.code == 2
    assert reason in ended.stderr


def test_a_parameter_of_the_sidecar_itself_goes_with_every_blueprint(run: Run, sidecar: InMemorySidecar) -> None:
    run(*CREATE, "--set", "_llm_interface=openai/v1/chat/completions", "--credential", "openAI_key=k")
    assert sidecar.sent(0)["parameters"]["_llm_interface"] == "openai/v1/chat/completions"


@pytest.mark.parametrize("model_id", ["-bcdefghijklmnopqrst", "--cdefghijklmnopqrst"])
def test_a_model_id_may_begin_with_dashes(run: Run, sidecar: InMemorySidecar, model_id: str) -> None:
    sidecar.responses["GET", f"/models/{model_id}"] = {"name": "m"}
    ended = run("models", "show", model_id)
    assert (ended.code, json.loads(ended.stdout)) == (0, {"name": "m"})


def test_an_unknown_option_is_still_refused(run: Run) -> None:
    assert run("models", "show", "m1", "--nope").code == 2


def test_a_key_may_come_from_a_file(run: Run, sidecar: InMemorySidecar, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-file\n")
    assert run(*CREATE, "--credential", f"openAI_key=file:{tmp_path}/key").code == 1
    assert sidecar.sent(0)["credential"] == {"openAI_key": "sk-file"}


def test_the_connector_of_a_model_that_cannot_be_registered_is_deleted(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.responses = {
        ("POST", "/connectors/_create"): {"connector_id": "c1"},
        ("DELETE", "/connectors/c1"): {},
    }
    assert run(*CREATE, "--credential", "openAI_key=k").code == 1
    assert sidecar.calls()[-1] == ("DELETE", "/connectors/c1")


def test_models_are_listed_by_name_one_a_line_behind_a_pipe(run: Run, sidecar: InMemorySidecar) -> None:
    hits = [
        {"_id": "2", "_source": {"name": "b [x]", "model_state": "DEPLOYED"}},
        {"_id": "1", "_source": {"name": "a", "model_state": "REGISTERED"}},
    ]
    sidecar.responses["POST", "/models/_search"] = {"hits": {"hits": hits}}
    assert run("models", "list", MLSTREAM_API_KEY="k").stdout == "1\ta\tREGISTERED\n2\tb [x]\tDEPLOYED\n"
    assert sidecar.requests[0].headers["authorization"] == "Bearer k"
    first, _ = json.loads(run("models", "list", "--json").stdout)
    assert first == {"id": "1", "name": "a", "state": "REGISTERED"}


@pytest.mark.parametrize("connector", [{"connector_id": "c1"}, {}])
def test_a_model_is_shown_with_its_connector_if_it_has_one(
    run: Run, sidecar: InMemorySidecar, connector: dict[str, str]
) -> None:
    sidecar.responses = {
        ("GET", "/models/m%2F1"): {"name": "m", **connector},
        ("GET", "/connectors/c1"): {"name": "c", "parameters": {}},
    }
    shown = json.loads(run("models", "show", "m/1", "--json").stdout)
    expected = {"connector": {"name": "c", "parameters": {}}} if connector else {}
    assert shown == {"name": "m", **connector, **expected}


def test_a_model_is_undeployed_and_deleted_and_its_connector_kept(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.responses = DELETABLE
    ended = run("models", "delete", "m1")
    assert ended.stdout == "deleted model m1\n"
    assert "connector c1 is kept (--with-connector deletes it, too)" in ended.stderr
    assert sidecar.calls() == [("GET", "/models/m1"), ("POST", "/models/m1/_undeploy"), ("DELETE", "/models/m1")]


def test_the_connector_is_deleted_too_if_that_is_asked_for(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.responses = DELETABLE
    assert run("models", "delete", "m1", "--with-connector").stdout == "deleted model m1\ndeleted connector c1\n"
    assert sidecar.calls()[-1] == ("DELETE", "/connectors/c1")


def test_a_model_without_a_connector_is_deleted_alone(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.responses = {**DELETABLE, ("GET", "/models/m1"): {"name": "m"}}
    ended = run("models", "delete", "m1", "--with-connector")
    assert (ended.stdout, ended.stderr) == ("deleted model m1\n", "")


@pytest.mark.parametrize(
    ("status", "code", "words"), [(409, 0, "connector c1 is kept: other models use it"), (403, 1, "(status 403)")]
)
def test_a_connector_that_other_models_use_is_kept_and_any_other_refusal_is_an_error(
    run: Run, sidecar: InMemorySidecar, status: int, code: int, words: str
) -> None:
    sidecar.responses = {**DELETABLE, ("DELETE", "/connectors/c1"): httpx.Response(status, json={"error": "no"})}
    ended = run("models", "delete", "m1", "--with-connector")
    assert (ended.code, ended.stdout) == (code, "deleted model m1\n")
    assert words in ended.stderr
