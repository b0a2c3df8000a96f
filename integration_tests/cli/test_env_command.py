"""`env` prints what clients of OpenAI and Anthropic need, and no secret."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anthropic
import openai
import pytest
from integration_tests.cli.commands import run_command
from integration_tests.cli.demo_process import Demo
from integration_tests.cli.guarded import PASSWORD
from integration_tests.cli.guarded import Guarded as Accounts
from integration_tests.server.guarded_sidecars import Guarded, running_guarded
from integration_tests.support.connector_bodies import openai as openai_connector

from opensearch_ml_stream.plugin.security.own_accounts import add_user

MODEL = "Demo of openai-chat"


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with running_guarded(tmp_path_factory.mktemp("locked")) as guarded:
        guarded.create_model(openai_connector("http://127.0.0.1:1"), name="mine's", access_mode="public")
        yield guarded


def evaluated(exports: str, **variables: str) -> dict[str, str]:
    """The variables that a shell has once it has read what the command printed."""
    script = f"{exports}\nenv -0"
    ended = subprocess.run(["sh", "-euc", script], env=variables, capture_output=True, text=True, check=True)
    pairs = [pair.split("=", 1) for pair in ended.stdout.rstrip("\0").split("\0")]
    return {name: value for name, value in pairs if name.startswith(("OPENAI_", "ANTHROPIC_"))}


def test_both_sdks_find_the_model_by_the_variables_alone(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = evaluated(run_command("env", MODEL, "--url", demo.url).stdout)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    messages = [{"role": "user", "content": "What is the meaning of life?"}]
    with openai.OpenAI() as client:
        answer = client.chat.completions.create(model=variables["OPENAI_MODEL"], messages=messages)  # type: ignore[arg-type]
    with anthropic.Anthropic() as other:
        message = other.messages.create(model=variables["ANTHROPIC_MODEL"], max_tokens=99, messages=messages)  # type: ignore[arg-type]
    assert (answer.choices[0].message.content or "").startswith("The meaning")
    assert message.content[0].text.startswith("The meaning")  # type: ignore[union-attr]


def test_where_nobody_logs_in_the_key_is_none(demo: Demo) -> None:
    assert json.loads(run_command("env", MODEL, "--url", demo.url, "--json").stdout) == {
        "OPENAI_BASE_URL": f"{demo.url}/v1",
        "OPENAI_API_KEY": "none",
        "OPENAI_MODEL": MODEL,
        "ANTHROPIC_BASE_URL": demo.url,
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_MODEL": MODEL,
    }


@pytest.mark.parametrize("source", ["", "env:MY_KEY", "file"])
def test_a_key_is_named_and_not_shown(locked: Guarded, tmp_path: Path, source: str) -> None:
    key = locked.keys["ml_predict_access"]
    file = tmp_path / "my key"
    file.write_text(key)
    variable = "MY_KEY" if source else "MLSTREAM_API_KEY"
    option = ("--api-key", f"file:{file}" if source == "file" else source) if source else ()
    ended = run_command("env", "mine's", "--url", locked.sidecar.url, *option, **{variable: key})
    assert (ended.returncode, ended.stderr) == (0, "")
    assert key not in ended.stdout
    variables = evaluated(ended.stdout, **{variable: key})
    assert [variables[name] for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")] == [key, key]
    assert variables["OPENAI_MODEL"] == variables["ANTHROPIC_MODEL"] == "mine's"


def test_who_logs_in_by_name_is_told_where_a_key_belongs(locked: Guarded) -> None:
    accounts = Accounts(locked.sidecar.url, locked.store)
    accounts.in_store(lambda store: add_user(store, "ann", PASSWORD, "ml_predict_access", 0))
    login = {"MLSTREAM_USER": "ann", "MLSTREAM_PASSWORD": PASSWORD}
    ended = run_command("env", "mine's", "--url", locked.sidecar.url, **login)
    assert 'OPENAI_API_KEY="$MLSTREAM_API_KEY"' in ended.stdout
    assert "Put a key of the sidecar (`keys create`) into MLSTREAM_API_KEY first" in ended.stderr


def test_a_model_that_is_not_there_is_an_error(demo: Demo) -> None:
    ended = run_command("env", "absent", "--url", demo.url)
    assert ended.returncode == 1
    assert "There is no model with the id or name [absent]" in ended.stderr
