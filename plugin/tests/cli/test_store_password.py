"""The store's password comes from where other users cannot see it, and a command line is cleared of it."""

import os
import sys
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from opensearch_ml_stream.plugin.cli.store_password import hide_store_password, with_store_password

URL = "https://me@host:9200/prefix?verify_certs=false"


def test_the_password_of_a_file_is_put_into_the_url(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("p@ss:w/ord%\n")
    assert with_store_password(URL, f"file:{tmp_path}/password") == (
        "https://me:p%40ss%3Aw%2Ford%25@host:9200/prefix?verify_certs=false"
    )


def test_the_environment_has_the_password_of_a_url_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLSTREAM_STORE_PASSWORD", "env:literal")
    monkeypatch.setenv("OTHER", "other")
    assert with_store_password("http://me@h", None) == "http://me:env%3Aliteral@h"
    assert with_store_password("http://me@h", "env:OTHER") == "http://me:other@h"
    for url in ("http://me:own@h", "http://h:9200", "sqlite:///a", "sqlite:///:memory:", "http://[h"):
        assert with_store_password(url, None) == url


def test_without_a_password_the_url_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLSTREAM_STORE_PASSWORD", raising=False)
    assert with_store_password("http://me@h", None) == "http://me@h"


@pytest.mark.parametrize(
    ("url", "option", "words"),
    [
        ("http://me@h", "hunter2", "must be env:NAME, file:PATH or -"),
        ("http://me@h", "file:/nope", "cannot read the file /nope"),
        ("sqlite:///a", "env:HOME", "needs a store with a user"),
        ("http://h", "env:HOME", "needs a store with a user"),
        ("http://me:pw@h", "env:HOME", "needs a store with a user and without a password"),
    ],
)
def test_an_option_that_cannot_be_used_says_why(url: str, option: str, words: str) -> None:
    with pytest.raises(WrongUsage, match=words) as raised:
        with_store_password(url, option)
    assert "hunter2" not in str(raised.value)


class Replaced(Exception):
    """Stands for the process that `execve` turns this one into: nothing after the call runs."""


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str], dict[str, str]]]:
    calls: list[tuple[str, list[str], dict[str, str]]] = []

    def execve(path: str, command: list[str], environment: dict[str, str]) -> None:
        calls.append((path, command, environment))
        raise Replaced

    monkeypatch.setattr(os, "execve", execve)
    return calls


@pytest.mark.parametrize("form", ["--store {}", "--store={}"])
def test_a_password_on_the_command_line_goes_to_the_environment(
    form: str, executed: list[tuple[str, list[str], dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "http://me:p%40ss@h:9200"
    before = [
        "/usr/bin/python",
        "-X",
        "dev",
        "/bin/opensearch-ml-stream",
        "serve",
        *form.format(url).split(),
        "--port",
        "0",
    ]
    monkeypatch.setattr(sys, "orig_argv", before)
    with pytest.raises(Replaced):
        hide_store_password(url)
    ((path, command, environment),) = executed
    assert path == sys.executable
    assert command == [one.replace("me:p%40ss@", "me@") for one in before]
    assert environment == {**os.environ, "MLSTREAM_STORE_PASSWORD": "p@ss"}
    assert with_store_password("http://me@h:9200", None) == "http://me@h:9200"


@pytest.mark.parametrize("url", [None, "", "sqlite:///a", "http://me@h", "http://h", "http://me:@h", "http://[h"])
def test_a_command_line_without_a_password_stays(
    url: str | None, executed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "serve", "--store", url or ""])
    hide_store_password(url)
    assert executed == []


def test_a_password_that_is_not_on_the_command_line_is_not_looked_for_there(
    executed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "serve"])
    hide_store_password("http://me:pw@h")
    assert executed == []
