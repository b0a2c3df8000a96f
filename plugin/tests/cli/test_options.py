"""The values of options: pairs, and secrets from variables, files and a prompt."""

import io
import sys
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from opensearch_ml_stream.plugin.cli.options import read_pairs, read_secret


def test_pairs_are_split_at_their_first_equals_sign() -> None:
    assert read_pairs("--set", ["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    assert read_pairs("--set", None) == {}


@pytest.mark.parametrize("pair", ["novalue", "=x"])
def test_a_pair_without_a_name_or_value_names_the_option(pair: str) -> None:
    with pytest.raises(WrongUsage, match="--set must be of the form name=value"):
        read_pairs("--set", [pair])


def test_a_secret_may_be_the_value_itself_even_with_a_colon() -> None:
    assert read_secret("key", "sk:1") == "sk:1"


def test_a_secret_is_read_from_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", " sk=1 ")
    assert read_secret("key", "env:THE_KEY") == " sk=1 "


def test_a_secret_is_read_from_a_file_without_the_line_break(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-file\n")
    assert read_secret("key", f"file:{tmp_path}/key") == "sk-file"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("env:NO_SUCH_VARIABLE", "credential key: the environment variable NO_SUCH_VARIABLE is not set"),
        ("file:/nope", r"credential key: cannot read the file /nope \(FileNotFoundError\)"),
    ],
)
def test_a_secret_that_cannot_be_read_is_named_with_the_reason(value: str, words: str) -> None:
    with pytest.raises(WrongUsage, match=words):
        read_secret("key", value)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xff")
    with pytest.raises(WrongUsage, match="UnicodeDecodeError"):
        read_secret("key", f"file:{tmp_path}/key")


def test_a_dash_reads_one_line_where_there_is_no_terminal_to_ask_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("sk 1 \r\nmore\n"))
    assert read_secret("key", "-") == "sk 1 "
    assert sys.stdin.read() == "more\n"


def test_without_a_terminal_or_a_line_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(WrongUsage, match="key: there is no terminal to ask on, and nothing on standard input"):
        read_secret("key", "-")
