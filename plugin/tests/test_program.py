"""The program takes the store's password off its command line before it does anything else."""

import os
import sys

import pytest

from opensearch_ml_stream.plugin.__main__ import PASSWORD_VARIABLE, main, without_password
from opensearch_ml_stream.plugin.cli import store_password

START = ["/usr/bin/python", "-X", "dev", "/bin/opensearch-ml-stream", "serve"]


@pytest.mark.parametrize("form", ["--store {}", "--store={}"])
def test_a_password_in_the_stores_url_is_taken_off(form: str) -> None:
    command = [*START, *form.format("http://me:p%40ss@h:9200/x?verify_certs=false").split(), "--port", "0"]
    bare, password = without_password(command)
    assert bare == [one.replace("me:p%40ss@", "me@") for one in command]
    assert password == "p@ss"


@pytest.mark.parametrize("url", ["", "sqlite:///a", "http://me@h", "http://h", "http://me:@h", "http://[h", "x:y@z"])
def test_a_command_line_without_a_password_stays(url: str) -> None:
    for command in ([*START, "--store", url], [*START, f"--store={url}"], [*START, "--host", "http://me:pw@h"]):
        assert without_password(command) == (command, None)


def test_of_several_stores_the_last_counts_and_no_password_stays() -> None:
    bare, password = without_password([*START, "--store", "http://a:one@h", "--store=http://b:two@h"])
    assert (bare, password) == ([*START, "--store", "http://a@h", "--store=http://b@h"], "two")


def test_the_password_of_all_hosts_of_a_cluster_is_taken_off() -> None:
    bare, password = without_password([*START, "--store", "https://a:x%2C@one:1/p,https://a:x%2C@two:2/p"])
    assert (bare, password) == ([*START, "--store", "https://a@one:1/p,https://a@two:2/p"], "x,")


class Replaced(Exception):
    """Stands for the process that `execve` turns this one into: nothing after the call runs."""


def test_the_program_is_started_again_with_the_password_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, list[str], dict[str, str]]] = []

    def execve(path: str, command: list[str], environment: dict[str, str]) -> None:
        calls.append((path, command, environment))
        raise Replaced

    monkeypatch.setattr(os, "execve", execve)
    monkeypatch.setattr(sys, "orig_argv", [*START, "--store", "http://me:p%40ss@h"])
    with pytest.raises(Replaced):
        main()
    assert calls == [
        (sys.executable, [*START, "--store", "http://me@h"], {**os.environ, "MLSTREAM_STORE_PASSWORD": "p@ss"})
    ]


def test_without_a_password_the_command_line_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "orig_argv", [*START, "--store", "http://me@h"])
    monkeypatch.setattr(sys, "argv", ["opensearch-ml-stream", "--version"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.strip()[0].isdigit()


def test_both_sides_mean_the_same_variable() -> None:
    assert PASSWORD_VARIABLE == store_password.PASSWORD_VARIABLE
