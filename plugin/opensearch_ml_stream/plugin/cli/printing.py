"""Tables and JSON on stdout, for people on a terminal and for programs behind a pipe."""

import sys
from collections.abc import Iterable, Sequence

import orjson
import typer
from rich.console import Console
from rich.table import Table


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on a terminal; behind a pipe one row a line, without the heads, cells separated by tabs."""
    if not sys.stdout.isatty():
        for row in rows:
            typer.echo("\t".join(row))
        return
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(_plain(cell) for cell in row))
    Console().print(table)


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2))


def _plain(cell: str) -> str:
    # Square brackets are rich's mark-up.
    return cell.replace("[", r"\[")
