"""The command `chat`: a conversation on a terminal; one answer in a pipe, or to a question on the command line."""

import sys
from collections.abc import Iterable, Mapping
from contextlib import closing
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer

from opensearch_ml_stream.extensions.openai_api.cli.attached_file import read_attachment
from opensearch_ml_stream.extensions.openai_api.cli.chat_answer import AnswerFigures, ChatAnswer, read_events
from opensearch_ml_stream.extensions.openai_api.cli.chat_thread import ChatThread
from opensearch_ml_stream.extensions.openai_api.extension import CHAT_PATH
from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from opensearch_ml_stream.plugin.cli.options import ModelName
from opensearch_ml_stream.plugin.cli.printing import print_json_line, print_note, print_text
from opensearch_ml_stream.plugin.cli.sidecar_api import SidecarAPI, open_api
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions, takes_sidecar

_HERE = "opensearch_ml_stream.extensions.openai_api.cli."  # modules that draw are only loaded on a terminal


@takes_sidecar
def chat(
    sidecar: SidecarOptions,
    model: ModelName,
    question: Annotated[str, typer.Argument(help="What to ask, behind what comes on standard input.")] = "",
    system: Annotated[str, typer.Option("--system", help="How the model is to answer.")] = "",
    attach: Annotated[
        list[Path] | None, typer.Option("--attach", metavar="FILE", help="An image, a PDF or a text to send along.")
    ] = None,
    temperature: Annotated[float | None, typer.Option("--temperature", help="The model's temperature.")] = None,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", help="The most tokens of an answer.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the events of one answer as they come.")] = False,
) -> None:
    """Converse with a model; behind a pipe, or with a question, print one answer."""
    options = {"temperature": temperature, "max_tokens": max_tokens}
    given = {name: value for name, value in options.items() if value is not None}
    thread, attached = ChatThread(model, system, given), [read_attachment(path) for path in attach or ()]
    with open_api(sidecar) as api:
        text = _read_question(question)
        if not text and sys.stdin.isatty() and sys.stdout.isatty() and not json:
            import_module(f"{_HERE}chat_terminal").ChatTerminal(api, thread, attached).converse()
            return
        if not (text or attached):
            raise WrongUsage("Say what to ask: the question, or standard input")
        thread.ask(text, attached)
        _answer_once(api, thread, json=json)


def _read_question(argument: str) -> str:
    try:
        piped = "" if sys.stdin.isatty() else sys.stdin.read().strip()
    except UnicodeDecodeError as error:
        raise WrongUsage("Standard input is not text in UTF-8; --attach takes images and PDFs") from error
    return "\n\n".join(text for text in (piped, argument) if text)


def _answer_once(api: SidecarAPI, thread: ChatThread, *, json: bool) -> None:
    with closing(api.stream(CHAT_PATH, thread.request(wants_usage=json), "text/event-stream")) as received:
        events = read_events(received)
        if json:
            for event in events:
                print_json_line(event)
        elif sys.stdout.isatty():
            console = import_module("opensearch_ml_stream.plugin.cli.terminal_console").TerminalConsole()
            draw = import_module(f"{_HERE}answer_screen").draw_answer
            draw(console, events, ChatAnswer(), AnswerFigures(monotonic))
        else:
            _print_text(events)


def _print_text(events: Iterable[Mapping[str, Any]]) -> None:
    """Print the text alone as it comes; notes on its end go to stderr."""
    answer, shown = ChatAnswer(), ""
    try:
        for event in events:
            if text := answer.add(event).text:
                print_text(text, end="")
                shown = text
    finally:
        if shown and not shown.endswith("\n"):
            print_text()
    for note in answer.notes():
        print_note(note)
