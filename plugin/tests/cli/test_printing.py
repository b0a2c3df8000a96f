"""What commands print: tables and JSON on stdout, and text of others on a terminal."""

import io
import json
import shlex
import sys
from threading import enumerate as enumerate_threads
from typing import Any, ClassVar

import pytest

from opensearch_ml_stream.plugin.cli.printing import (
    one_line,
    print_json,
    print_table,
    printable,
    printable_json,
    waiting,
)

ROWS = [("1", "b [bold]x[/bold]"), ("2", "a")]


def test_behind_a_pipe_a_table_is_one_row_a_line_without_heads(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("Id", "Name"), ROWS)
    assert capsys.readouterr().out == "1\tb [bold]x[/bold]\n2\ta\n"


def test_on_a_terminal_a_table_has_heads_and_square_brackets_are_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    print_table(("Id", "Name"), ROWS)
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert [[cell.strip() for cell in line] for line in lines] == [
        ["Id", "Name"],
        ["1", "b [bold]x[/bold]"],
        ["2", "a"],
    ]


def test_as_json_a_table_is_an_array_of_objects_named_as_its_columns_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("Id", "At run time", "Roles"), [("1", True, ("a", "b"))], json=True)
    assert json.loads(capsys.readouterr().out) == [{"id": "1", "at_run_time": True, "roles": ["a", "b"]}]
    print_table(("Id", "At run time", "Roles"), [("1", True, ("a", "b"))])
    assert capsys.readouterr().out == "1\tyes\ta, b\n"


def test_behind_a_pipe_all_rows_are_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads the first row alone closes the pipe, and what is written after that is an error."""

    class Pipe(io.BytesIO):
        writes: ClassVar[list[bytes]] = []

        def write(self, data: Any, /) -> int:
            self.writes.append(bytes(data))
            return len(data)

    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(Pipe(), write_through=True))
    print_table(("Id", "Name"), ROWS)
    assert [data for data in Pipe.writes if data] == [b"1\tb [bold]x[/bold]\n2\ta\n"]


def test_what_takes_a_while_is_told_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    shown = ""
    with waiting("calling [b]", shown_after=0):
        while "calling [b] ..." not in shown:
            shown += capsys.readouterr().err


@pytest.mark.parametrize(("is_terminal", "shown_after"), [(False, 0.0), (True, 3600.0)])
def test_behind_a_pipe_or_at_once_nothing_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_terminal: bool, shown_after: float
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    threads = set(enumerate_threads())
    with waiting("calling", shown_after):
        pass
    assert capsys.readouterr().err == ""
    assert set(enumerate_threads()) <= threads  # one of an earlier test may end meanwhile


def test_json_is_indented_and_keeps_every_character(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": ["é"]})
    out = capsys.readouterr().out
    assert json.loads(out) == {"a": ["é"]}
    assert out.startswith('{\n  "a"') and "é" in out


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a\tb\nc é 漢 👍🏽", "a\tb\nc é 漢 👍🏽"),
        ("a\x1b[31;1mred\x1b[0m", "ared"),
        ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b", "ab"),
        ("\x1bP+q544e\x1b\\a\x1b_x\x9cb", "ab"),
        ("\x1b]0;without an end", "]0;without an end"),
        ("\x1bca\x1b", "ca"),
        ("\x9b31ma\x90b", "31mab"),
        ("a\r\nb\rc\x08\x7f\x00\x0b\x0c", "a\nbc"),
        ("a\u202eb\u2066c\u200ed\u061c", "abcd"),
        ("\x1b[3\x1b]52;c;eA==\x071m", "[31m"),
        ("\x1b[0 qa", "a"),
        ("half of a pair: \ud83d", "half of a pair: "),
    ],
)
def test_sequences_and_control_characters_are_left_out_and_all_text_stays(text: str, left: str) -> None:
    assert printable(text) == left


def test_in_json_control_characters_become_escapes_so_that_nothing_is_lost() -> None:
    assert printable_json('{"a":"\u009b\u202e é"}') == '{"a":"\\u009b\\u202e é"}'


def test_in_one_line_breaks_and_tabs_are_a_space() -> None:
    assert one_line("a\r\n\tb\u2028c d") == "a b c d"


@pytest.mark.parametrize(
    "word", ["\x1b['", '\x1b["', "\x1b[", "a\x1b]", "\x1b]'; touch x; '\x07", "\x1b[' ; touch x #"]
)
def test_words_that_are_quoted_for_a_shell_stay_quoted(word: str) -> None:
    shown = printable(shlex.join(("predict", word, "Hello", word, "$(x)")))
    assert shlex.split(shown)[-1] == "$(x)" and "touch" not in shlex.split(shown)
