"""The lines that the demo prints, with and without a login."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.cli.credentials import Login
from opensearch_ml_stream.plugin.cli.running.first_steps import first_steps
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions
from opensearch_ml_stream.plugin.security.presented_credentials import ApiKey, NameAndPassword

SIDECAR = SidecarOptions("http://127.0.0.1:9510")


@pytest.fixture(autouse=True)
def program_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines name this program as it was called, and are as long as that."""
    monkeypatch.setattr(sys, "argv", ["opensearch-ml-stream"])


def commands(login: Login | None, sidecar: SidecarOptions = SIDECAR) -> list[list[str]]:
    """The words of each command, up to a pipe."""
    shown = first_steps(sidecar, login, "m1", "m2").replace("\\\n", "")
    lines = [line.strip() for line in shown.splitlines() if re.match("  [^ ]", line)]
    return [shlex.split(line.partition(" | ")[0]) for line in lines]


def test_an_id_that_a_shell_would_run_is_one_word_of_what_is_pasted() -> None:
    shown = first_steps(SIDECAR, None, "$(x) y", "m2").replace("\\\n", "")
    (line,) = (line for line in shown.splitlines() if " predict " in line)
    assert shlex.split(line)[2] == "$(x) y"
    assert "/models/%24%28x%29%20y/_predict/stream" in shown


def test_without_a_login_none_is_shown() -> None:
    assert "log in" not in first_steps(SIDECAR, None, "m1", "m2")
    assert not [words for words in commands(None) if {"-u", "--user"} & {*words} or "Authorization" in str(words)]
    assert [words[0] for words in commands(None)][:3] == ["curl"] * 3


def test_a_key_goes_to_curl_from_its_variable_and_to_this_program_by_itself() -> None:
    login = Login(ApiKey("mls_1_secret"), "the key of MLSTREAM_API_KEY")
    shown = first_steps(SIDECAR, login, "m1", "m2")
    assert "MLSTREAM_API_KEY has to hold a key where you paste this" in shown and "secret" not in shown
    *curls, predict, create = commands(login)
    assert [words.count("Authorization: Bearer $MLSTREAM_API_KEY") for words in curls] == [1] * 3
    assert "--user" not in predict + create


def test_a_users_password_is_asked_for_by_both() -> None:
    login = Login(NameAndPassword("ann", "hunter22"), "the user of MLSTREAM_USER")
    shown = first_steps(SIDECAR, login, "m1", "m2")
    assert "you are asked for the password of ann" in shown and "hunter22" not in shown
    *curls, predict, create = commands(login)
    assert [words[words.index("-u") + 1] for words in curls] == ["ann"] * 3
    assert [words[words.index("--user") + 1] for words in (predict, create)] == ["ann"] * 2


@pytest.mark.parametrize("login", [None, Login(ApiKey("k"), "it"), Login(NameAndPassword("ann", "pw"), "it")])
def test_the_files_of_tls_are_named(login: Login | None) -> None:
    sidecar = SidecarOptions("https://h", ca_certs=Path("a b.pem"), client_cert=Path("c.pem"))
    assert all({"a b.pem", "c.pem"} <= {*words} for words in commands(login, sidecar))
    assert [line for line in first_steps(SIDECAR, login, "m" * 20, "m" * 20).splitlines() if len(line) > 86] == []


def test_the_page_is_named_for_a_browser() -> None:
    assert f" in a browser: {SIDECAR.url}/\n" in first_steps(SIDECAR, None, "m1", "m2")
