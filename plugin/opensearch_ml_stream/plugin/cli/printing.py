"""The one place where commands print: texts, tables, JSON and progress.

On a terminal, text of models and servers is printed without control sequences; a pipe gets it unchanged. Whether
there is a terminal is decided for standard output and standard error separately. Rich is loaded for a terminal only.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from threading import Timer
from typing import Any, TextIO

import orjson
import typer

# Quotes, which a sequence may hold, are never matched: a shell's quoted words have to stay quoted.
_SEQUENCE = r"\x1b\[[0-?]*[ !#-&(-/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
# Also characters that reverse the direction of writing: the code shown would not be the code copied.
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f\ud800-\udfff]"
_UNWANTED = re.compile(f"{_SEQUENCE}|{_CONTROL}")
_CONTROL_CHARACTER = re.compile(_CONTROL)
_BREAKS = re.compile(r"[\t-\r\x85\u2028\u2029]+")


def printable(text: str) -> str:
    """Return a text without escape sequences and control characters; tabs and line breaks stay.

    A sequence that is split over two texts leaves letters only: the character that begins it is always removed.
    """
    return _UNWANTED.sub("", text)


def printable_json(text: str) -> str:
    """Return JSON text with its control characters replaced by JSON escapes."""
    return _CONTROL_CHARACTER.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """Return a text with each run of line breaks and tabs replaced by one space."""
    return _BREAKS.sub(" ", text)


def print_text(text: str = "", end: str = "\n") -> None:
    """Print a text on standard output: the command's result."""
    _write(sys.stdout, text, end)


def print_note(text: str, end: str = "\n", *, is_dim: bool = False) -> None:
    """Print a text on standard error: anything beside the result."""
    _write(sys.stderr, text, end, is_dim=is_dim)


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    _write_json(orjson.dumps(value, option=orjson.OPT_INDENT_2))


def print_json_line(value: object) -> None:
    """Print a value as JSON in one line."""
    _write_json(orjson.dumps(value))


def prompt(name: str, *, hidden: bool = True, twice: bool = False) -> str:
    """Prompt for the value called `name` on the terminal, and return it."""
    asked = printable(one_line(name))
    return str(typer.prompt(asked, hide_input=hidden, confirmation_prompt=twice, err=True))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, json: bool = False) -> None:
    """Print a table on a terminal; into a pipe one row a line, without headers, cells separated by tabs.

    With `json` print an array of objects, whose members have the names of the columns.
    """
    if json:
        names = [column.lower().replace(" ", "_") for column in columns]
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    lines = [[_text(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        # In one write: a program that stops after one row, as `grep -m1`, would break the pipe for the next write.
        print_text("".join("\t".join(line) + "\n" for line in lines), end="")
        return
    table = import_module("rich.table").Table(*columns, box=None, pad_edge=False, header_style="bold")
    text = import_module("rich.text").Text  # a plain string would be parsed as mark-up
    for line in lines:
        table.add_row(*(text(printable(cell)) for cell in line))
    _console_class()().print(table)


@contextmanager
def waiting(what: str, shown_after: float = 1.0) -> Iterator[None]:
    """Show on stderr what is waited for, after so many seconds; on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    text = import_module("rich.text").Text(printable(one_line(f"{what} ...")))
    status = _console_class()(stderr=True).status(text)
    timer = Timer(shown_after, status.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def _text(cell: object) -> str:
    """Return a cell's text in one line, so that a line break in it makes no second row."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return one_line(", ".join(cell) if isinstance(cell, tuple) else str(cell))


def _console_class() -> Any:
    return import_module("opensearch_ml_stream.plugin.cli.terminal_console").TerminalConsole


def _write(stream: TextIO, text: str, end: str, *, is_dim: bool = False) -> None:
    if stream.isatty():
        text = printable(text)
        text = typer.style(text, dim=True) if is_dim else text
    stream.write(text + end)
    stream.flush()


def _write_json(text: bytes) -> None:
    if sys.stdout.isatty():
        print_text(printable_json(text.decode()))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()
