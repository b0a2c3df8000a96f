"""Tables and JSON on stdout."""

import json
import sys

import pytest

from opensearch_ml_stream.plugin.cli.printing import print_json, print_table

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


def test_json_is_indented_and_keeps_every_character(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": ["é"]})
    out = capsys.readouterr().out
    assert json.loads(out) == {"a": ["é"]}
    assert out.startswith('{\n  "a"') and "é" in out
