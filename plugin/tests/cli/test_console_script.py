"""The console script: help, version, exit codes, one line on stderr."""

import subprocess
import sys

import httpx
import pytest

from opensearch_ml_stream.plugin.cli import _program
from tests.cli.conftest import Run
from tests.cli.in_memory_sidecar import InMemorySidecar


def test_help_names_every_command(run: Run) -> None:
    ended = run("--help")
    assert ended.code == 0
    assert all(name in ended.stdout for name in ("serve", "demo", "blueprints", "models", "predict", "settings"))


def test_the_version_is_the_packages(run: Run) -> None:
    assert run("--version").stdout.strip()[0].isdigit()


def test_an_error_of_the_server_is_one_line_with_advice_and_exit_code_1(run: Run) -> None:
    ended = run("predict", "m1", "--stream", "hi")
    assert (ended.code, ended.stdout) == (1, "")
    assert ended.stderr == (
        "opensearch-ml-stream: Failed to find model (status 404); see the ids with `opensearch-ml-stream models list`\n"
    )


def test_a_server_that_cannot_be_reached_is_exit_code_3_and_no_password_is_shown(
    run: Run, sidecar: InMemorySidecar
) -> None:
    sidecar.responses["POST", "/models/_search"] = httpx.ConnectError("refused")
    ended = run("models", "list", MLSTREAM_URL="http://127.0.0.1:1", MLSTREAM_USER="me", MLSTREAM_PASSWORD="hunter2")
    assert (ended.code, ended.stdout) == (3, "")
    assert "Cannot reach http://127.0.0.1:1 (refused)" in ended.stderr
    assert "hunter2" not in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["predict"], "MODEL_ID"),
        (["predict", "m1"], "Say what to ask"),
        (["predict", "m1", "x", "--set", "novalue"], "--set must be of the form name=value"),
        (["models", "list", "--url", "localhost:9510"], "--url must be of the form http://host:port"),
        (["models", "list", "--url", "http://me:hunter2@h:1"], "--url holds no login"),
        (["models", "list", "--user", "me:hunter2"], "--user is a name alone"),
        (["models", "list", "--user", "me", "--password", "hunter2"], "--password must be env:NAME, file:PATH or -"),
        (["models", "list", "--user", "me"], "Password of me: there is no terminal to ask on"),
        (["models", "list", "--password", "env:PW"], "--password needs --user"),
        (["models", "list", "--api-key", "hunter2"], "--api-key must be env:NAME, file:PATH or -"),
        (["models", "list", "--api-key", "env:NOPE"], "NOPE is not set"),
        (["models", "list", "--api-key", "-", "--user", "me"], "--api-key is a login of its own"),
        (
            ["models", "create", "--blueprint", "nope"],
            "No blueprint is named nope; `opensearch-ml-stream blueprints list`",
        ),
        (["models", "create", "--blueprint", "openai-chat"], "needs the credential [openAI_key]"),
        (["models", "create", "--blueprint", "openai-chat", "--credential", "x=1"], "it takes openAI_key"),
        (["models", "create", "--blueprint", "openai-chat", "--credential", "openAI_key=env:NOPE"], "NOPE is not set"),
        (["models", "create", "--blueprint", "openai-chat", "--credential", "openAI_key=file:/nope"], "cannot read"),
        (["serve", "--config", "/nope.yml"], "Cannot read the configuration file /nope.yml"),
        (["serve", "--port", "70000"], "from 0 to 65535"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_tells_what_is_right(
    run: Run, sidecar: InMemorySidecar, arguments: list[str], words: str
) -> None:
    ended = run(*arguments)
    assert ended.code == 2
    assert words in " ".join(ended.stderr.split())
    assert "hunter2" not in ended.stderr
    assert sidecar.requests == []


def test_the_command_line_does_not_load_what_keeps_metrics() -> None:
    """That is decided where it is loaded: a server says before in which folder its workers keep them."""
    code = "import sys; from opensearch_ml_stream.plugin import cli; cli._program([])"
    code += "; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "opensearch_ml_stream.plugin.cli.running.serve_commands" in loaded
    assert "prometheus_client" not in loaded


def test_each_command_is_listed_and_loaded_by_itself(run: Run) -> None:
    listed = run("--help").stdout
    program = _program([])
    names = [str(one.name) for one in program.registered_commands]
    names += [str(one.name) for one in program.registered_groups]
    assert {"serve", "models", "doctor"} <= set(names)
    for name in names:
        assert f" {name} " in listed
        shown = run(name, "--help")
        assert (shown.code, f"opensearch-ml-stream {name} " in shown.stdout) == (0, True)
