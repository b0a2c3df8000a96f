"""Print a diagnosis for people: the steps, the paths, the findings, and what to do."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from rich.table import Table
from rich.text import Text

from opensearch_ml_stream.extensions.doctor.cli.path_comparison import End, Finding, PathTimeline, Place
from opensearch_ml_stream.extensions.doctor.diagnosis.report import Report, Step, Verdict
from opensearch_ml_stream.plugin.cli.printing import print_text, printable
from opensearch_ml_stream.plugin.cli.terminal_console import TerminalConsole

_PIPE_COLUMNS = 120  # behind a pipe, unless COLUMNS says otherwise
_STYLES: Mapping[Verdict, str] = {"ok": "green", "warning": "yellow", "failed": "bold red", "skipped": "dim"}
_NAMES = {
    "first_byte": "first byte",
    "first_token": "first token",
    "tls": "TLS",
}
# The details of a step that are printed; the JSON has all.
_SHOWN_DETAILS: Mapping[str, Sequence[str]] = {
    "template": ("headers", "body"),
    "spec": ("turned_on_by",),
    "tls": ("subject", "issuer", "certificate", "valid_until", "verify_error"),
    "response": ("headers",),
}
_ENDS: Mapping[End, str] = {
    "complete": "complete", "error": "an error", "cut": "cut", "refused": "refused", "unreachable": "not reached",
    "too long": "not waited for",
}  # fmt: skip


def place_name(place: Place, urls: Mapping[Place, str]) -> str:
    """Return a place as people know it, with its URL."""
    name = place if place == "provider" else f"the {place}"
    return f"{name} {urls[place]}" if place in urls else name


class ReportPrinter:
    """Prints to stdout: in colour and as wide as the terminal, or plain behind a pipe."""

    def __init__(self) -> None:
        columns = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else _PIPE_COLUMNS
        self._console = TerminalConsole(width=columns)

    def _print(self, shown: Table | Text | str = "") -> None:
        """Print a part; into a pipe without the white space that pads a table's last column."""
        if self._console.is_terminal:
            self._console.print(shown)
            return
        with self._console.capture() as captured:
            self._console.print(shown)
        print_text("\n".join(map(str.rstrip, captured.get().split("\n"))), end="")

    def _text(self, text: str, style: str = "") -> Text:
        """Return a text of any origin to draw. Rich itself removes control sequences only in part."""
        return Text(printable(text) if self._console.is_terminal else text, style)

    def steps(self, report: Report) -> None:
        """Print one line for each step, and below it the details."""
        table = _table("left", "left", "right", "left")
        for step in report.steps:
            style = _STYLES[step.verdict]
            time = "" if step.verdict == "skipped" else _milliseconds(step.milliseconds)
            name = _NAMES.get(step.name, step.name)
            table.add_row(
                self._text(step.verdict, style),
                self._text(name, "bold"),
                self._text(time),
                self._text(step.summary, _dim(step)),
            )
            for line in _detail_lines(step):
                table.add_row("", "", "", self._text(line, "dim"))
        self._print(table)

    def paths(self, provider: PathTimeline, paths: Sequence[PathTimeline], urls: Mapping[Place, str]) -> None:
        """Print how the text arrived by each path."""
        self._print()
        table = _table("left", "left", "right", "right", "right", "right", "left")
        table.add_row(*(self._text(head, "bold") for head in _HEADS))
        for path in (provider, *paths):
            gap, first = path.longest_gap, path.arrivals[0] if path.arrivals else None
            table.add_row(
                self._text(path.place + (f" {urls[path.place]}" if path.place in urls else "")),
                path.wire_format or "",
                str(len(path.reads)),
                "" if first is None else _milliseconds(first),
                "" if first is None else _milliseconds(gap),
                _milliseconds(path.end_ms),
                self._text(_ENDS[path.end], "" if path.end == "complete" else "red"),
            )
        self._print(table)

    def findings(self, findings: Sequence[Finding], urls: Mapping[Place, str]) -> None:
        """Print the findings about the paths."""
        if not findings:
            return
        self._print()
        table = _table("left", "left")
        for finding in findings:
            formats = f" ({' and '.join(finding.formats)})" if finding.formats else ""
            text = f"{place_name(finding.place, urls)} {finding.summary}{formats}"
            table.add_row(self._text(finding.verdict, _STYLES[finding.verdict]), self._text(text))
        self._print(table)

    def conclusion(self, works: bool, advice: Sequence[str], note: str = "") -> None:
        """Print the last lines: whether all works, what was left out, and what to do."""
        self._print()
        if note:
            self._print(self._text(note))
        if not advice:
            self._print(
                self._text("All works.", "green") if works else self._text("See what failed, above.", "bold red")
            )
            return
        self._print(self._text("What to do" if not works else "All works; what could be better", "bold"))
        table = _table("left", "left")
        for line in advice:
            table.add_row("-", self._text(f"{line}."))
        self._print(table)


_HEADS = ("by", "format", "reads", "first text", "longest gap", "end", "")


def advice_of(report: Report, findings: Iterable[Finding], urls: Mapping[Place, str]) -> list[str]:
    """Return what to do about each step and finding, each advice once."""
    of_steps = [f"{_NAMES.get(step.name, step.name)}: {step.advice}" for step in report.steps if step.advice]
    of_paths = [f"{place_name(finding.place, urls)}: {finding.advice}" for finding in findings]
    return list(dict.fromkeys(line.rstrip(".") for line in (*of_steps, *of_paths)))


def _detail_lines(step: Step) -> list[str]:
    lines: list[str] = []
    for name in _SHOWN_DETAILS.get(step.name, ()):
        value = step.details.get(name)
        if isinstance(value, Mapping) and name in ("headers", "certificate"):
            lines += [f"{key}: {_shown(member)}" for key, member in value.items()]
        elif value:
            lines.append(_shown(value) if name == "body" else f"{name.replace('_', ' ')}: {_shown(value)}")
    return lines


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _dim(step: Step) -> str:
    return "dim" if step.verdict == "skipped" else ""


def _milliseconds(milliseconds: float) -> str:
    return f"{milliseconds:,.0f} ms"


def _table(*justify: Any) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for number, side in enumerate(justify, 1):
        table.add_column(justify=side, no_wrap=number < len(justify), overflow="fold")
    return table
