"""The console script: help, version, exit codes, one line on stderr."""

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.main import get_group

from opensearch_ml_stream.plugin.cli import _program, main
from opensearch_ml_stream.plugin.cli.printing import print_text
from tests.cli.conftest import Run
from tests.cli.in_memory_sidecar import InMemorySidecar

KEY = ("keys", "create", "k", "--role", "ml_full_access", "--store")


def test_help_names_every_command(run: Run) -> None:
    ended = run("--help")
    assert ended.code == 0
    assert all(name in ended.stdout for name in ("serve", "demo", "blueprints", "models", "predict", "settings"))


def test_the_version_is_the_packages(run: Run) -> None:
    assert run("--version").stdout.strip()[0].isdigit()


def test_what_the_encoding_of_stdout_lacks_is_a_question_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    monkeypatch.setattr(sys, "argv", ["opensearch-ml-stream", "--version"])
    with pytest.raises(SystemExit):
        main()
    print_text("h\u00e9 \U0001f600 \ud83d")
    assert written.getvalue().splitlines()[-1] == b"h? ? ?"


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
        (["models", "list", "--url", "http://me:hunter2@h:1"], "--url cannot hold a login"),
        (["models", "list", "--user", "me:hunter2"], "--user takes a name only"),
        (["models", "list", "--user", "me", "--password", "hunter2"], "--password must be env:NAME, file:PATH or -"),
        (["models", "list", "--user", "me"], "Password of me: there is no terminal to ask on"),
        (["models", "list", "--password", "env:PW"], "--password needs --user"),
        (["models", "list", "--api-key", "hunter2"], "--api-key must be env:NAME, file:PATH or -"),
        (["models", "list", "--api-key", "env:NOPE"], "NOPE is not set"),
        (["models", "list", "--api-key", "-", "--user", "me"], "--api-key cannot be combined with --user"),
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


_COMMAND = """
import sys
from contextlib import suppress
from opensearch_ml_stream.plugin.cli import main
with suppress(SystemExit):
    main()
print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "most_modules", "not_loaded"),
    [
        (["--help"], 130, "httpx"),
        (["--version"], 9, "httpx yaml asyncio"),
        (["models", "list"], 30, "yaml"),
        (["models", "show", "m1"], 30, "yaml"),
        (["endpoints", "list"], 159, "yaml"),
        (["embed", "m1", "a"], 25, "yaml"),
        (["predict", "m1", "a"], 27, "yaml"),
        (["predict", "m1", "a", "--stream"], 27, "yaml"),
        (["chat", "m1", "a"], 150, "readline"),
        (["login"], 26, "yaml"),
        (["logout"], 26, "yaml"),
        (["blueprints", "list"], 13, "httpx yaml asyncio"),
        (["keys", "list", "--store", "sqlite:///{folder}/store.db"], 161, "httpx rich"),
        (["users", "list", "--store", "sqlite:///{folder}/store.db"], 161, "httpx rich"),
        (["settings"], 131, "httpx rich asyncio"),
        (["extensions"], 131, "httpx rich asyncio"),
        (["serve", "--help"], 135, "httpx prometheus_client"),
    ],
)
def test_a_command_loads_its_own_code_and_nothing_that_it_does_not_need(
    tmp_path: Path, arguments: list[str], most_modules: int, not_loaded: str
) -> None:
    """Imports are what a command costs. What keeps metrics is loaded by a server, once it says in which folder."""
    made = [sys.executable, "-c", _COMMAND, *KEY, f"sqlite:///{tmp_path}/store.db"]
    subprocess.run(made, capture_output=True, check=True)
    command = [argument.format(folder=tmp_path) for argument in arguments]
    environment = {"MLSTREAM_URL": "http://127.0.0.1:1", "XDG_CONFIG_HOME": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", _COMMAND, *command], capture_output=True, text=True, check=True, env=environment
    )
    loaded = ended.stderr.splitlines()[-1].split()
    packages = {name.partition(".")[0] for name in loaded}
    assert packages.isdisjoint({"opensearchpy", "aiohttp", "requests", "starlette", "uvicorn", *not_loaded.split()})
    assert len([name for name in loaded if name.startswith("opensearch_ml_stream")]) <= most_modules


def test_each_command_is_loaded_by_itself_and_listed_by_the_help_that_it_has(run: Run) -> None:
    program = get_group(_program())
    context = program.make_context("opensearch-ml-stream", [], resilient_parsing=True)
    names = program.list_commands(context)
    listed = run("--help").stdout
    assert {"serve", "models", "doctor"} <= set(names)
    for name in names:
        assert f" {name} " in listed
        shown = run(name, "--help")
        assert (shown.code, f"opensearch-ml-stream {name} " in shown.stdout) == (0, True)
        declared: Any = program.get_command(context, name)
        assert declared._load().help.partition("\n\n")[0].replace("\n", " ") == declared.help


def test_the_shell_completes_commands_and_their_options() -> None:
    def completed(words: str) -> list[str]:
        environment = {
            "_OPENSEARCH_ML_STREAM_COMPLETE": "complete_bash",
            "COMP_WORDS": f"opensearch-ml-stream {words}",
            "COMP_CWORD": str(len(words.split(" "))),
        }
        command = [str(Path(sys.executable).with_name("opensearch-ml-stream"))]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.split()

    assert completed("mod") == ["models"]
    assert completed("doc") == ["doctor"]  # of an extension
    assert completed("models sh") == ["show"]
    assert completed("models list --js") == ["--json"]
    assert completed("models create --blueprint ollama-") == [
        "ollama-chat", "ollama-embedding", "ollama-generate", "ollama-openai-chat"
    ]  # fmt: skip
