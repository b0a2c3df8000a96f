"""Tables, JSON and progress: for people on a terminal, and for programs behind a pipe.

What draws is loaded where there is a terminal to draw on.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from threading import Timer

import orjson
import typer


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, json: bool = False) -> None:
    """Print a table on a terminal; behind a pipe one row a line, without the heads, cells separated by tabs.

    As JSON it is an array of objects, whose members are named as the columns are.
    """
    if json:
        names = [column.lower().replace(" ", "_") for column in columns]
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    lines = [[_text(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        # At once: a program that reads one row alone, as `grep -m1` does, would break the pipe under the next one.
        typer.echo("".join("\t".join(line) + "\n" for line in lines), nl=False)
        return
    table = import_module("rich.table").Table(*columns, box=None, pad_edge=False, header_style="bold")
    for line in lines:
        table.add_row(*(_plain(cell) for cell in line))
    import_module("rich.console").Console().print(table)


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2))


@contextmanager
def waiting(what: str, shown_after: float = 1.0) -> Iterator[None]:
    """Say on stderr what is waited for, once that has taken so many seconds; only on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    status = import_module("rich.console").Console(stderr=True).status(f"{_plain(what)} ...")
    timer = Timer(shown_after, status.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def _text(cell: object) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return ", ".join(cell) if isinstance(cell, tuple) else str(cell)


def _plain(cell: str) -> str:
    # Square brackets are rich's mark-up.
    return cell.replace("[", r"\[")
