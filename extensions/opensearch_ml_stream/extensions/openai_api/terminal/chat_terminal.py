"""A conversation on a terminal: what is typed is asked, or is a command."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from rich.console import Console

from opensearch_ml_stream.extensions.openai_api.paths import CHAT_PATH
from opensearch_ml_stream.extensions.openai_api.terminal.answer_figures import AnswerFigures
from opensearch_ml_stream.extensions.openai_api.terminal.attached_file import read_attachment
from opensearch_ml_stream.extensions.openai_api.terminal.chat_answer import ChatAnswer, read_events
from opensearch_ml_stream.extensions.openai_api.terminal.chat_thread import ChatThread
from opensearch_ml_stream.extensions.openai_api.terminal.drawn_answer import draw_answer, say
from opensearch_ml_stream.extensions.openai_api.terminal.saved_thread import as_json, as_markdown
from opensearch_ml_stream.extensions.openai_api.terminal.stop_key import StopKey
from opensearch_ml_stream.extensions.openai_api.terminal.typed_lines import TypedLines
from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed, WrongUsage
from opensearch_ml_stream.plugin.cli.printable_text import printable
from opensearch_ml_stream.plugin.cli.sidecar_api import SidecarAPI
from opensearch_ml_stream.plugin.cli.terminal_console import TerminalConsole

_SWITCHES = {"on": True, "off": False}


@dataclass(slots=True)
class ChatTerminal:
    """A thread, and the terminal on which it goes on. `attached` goes with the next question."""

    api: SidecarAPI
    thread: ChatThread
    attached: list[Mapping[str, Any]]
    console: Console = field(default_factory=TerminalConsole)
    typed: TypedLines = field(default_factory=TypedLines)
    shows_figures: bool = False
    is_over: bool = False
    saved: set[Path] = field(default_factory=set)

    def converse(self) -> None:
        """Go on until the end: Ctrl-D, Ctrl-C at an empty prompt, or `/quit`."""
        self._say(f"{self.thread.model}: /help shows the commands; Ctrl-C stops an answer, Ctrl-D ends")
        while not self.is_over:
            calls = self.thread.calls_without_result
            text = self.typed.read(f"result of {printable(calls[0]['function']['name'])}> " if calls else "> ")
            if text is None:
                return
            try:
                self._take(text)
            except CommandFailed as error:
                say(self.console, str(error), "red")

    def _take(self, text: str) -> None:
        if text.startswith("/"):
            self._run(text)
        elif not text.strip():
            return
        elif self.thread.calls_without_result:
            self.thread.add_result(text)
            self._answer()
        else:
            self.thread.ask(text, self.attached)
            self.attached = []
            self._answer()

    def _run(self, text: str) -> None:
        name, _, argument = text[1:].strip().partition(" ")
        command = COMMANDS.get(name)
        if command is None:
            names = ", ".join(f"/{known}" for known in COMMANDS)
            raise WrongUsage(f"There is no command /{name}, but {names}; a question that begins so needs a space first")
        command.run(self, argument.strip())

    def _answer(self) -> None:
        if self.thread.calls_without_result:
            return
        answer, figures = ChatAnswer(), AnswerFigures(monotonic)
        body = self.thread.request(wants_usage=self.shows_figures)
        try:
            with StopKey() as key, closing(self.api.stream(CHAT_PATH, body, "text/event-stream")) as received:
                draw_answer(self.console, key.until_pressed(read_events(received)), answer, figures)
            if key.is_pressed:
                self._say("stopped; /again asks again")
        except CommandFailed as error:
            raise CommandFailed(f"{error}; /again asks again") from error
        finally:
            self.thread.keep(answer.message())
        if self.shows_figures:
            self._say(figures.line(answer))
        self.console.print()

    def _say(self, text: str) -> None:
        say(self.console, text)

    # The commands.

    def again(self, _: str) -> None:
        """Ask the last question again."""
        if not self.thread.drop_answer():
            raise WrongUsage("There is nothing to ask again")
        self._answer()

    def attach(self, name: str) -> None:
        """Send a file with the next question: an image, a PDF or a text."""
        self.attached.append(read_attachment(Path(_needed("/attach FILE", name))))
        self._say(f"{name} goes with the next question")

    def clear(self, _: str) -> None:
        """Begin a new thread with the same model and system message."""
        self.thread.messages.clear()
        self.attached = []
        self._say("a new thread")

    def figures(self, switch: str) -> None:
        """Show first token, tokens a second, tokens and cost below each answer, or no more."""
        if switch not in _SWITCHES:
            raise WrongUsage("/figures needs on or off")
        self.shows_figures = _SWITCHES[switch]

    def help(self, _: str) -> None:
        """Show the commands."""
        for name, command in COMMANDS.items():
            self._say(f"{f'/{name} {command.argument}':<18}{command.summary}")
        self._say("A line that ends with a backslash goes on in the next; what is pasted is one text.")

    def model(self, name: str) -> None:
        """Go on with another model."""
        self.thread.model = _needed("/model NAME", name)
        self._say(f"{name} answers from now on")

    def quit(self, _: str) -> None:
        """End the conversation."""
        self.is_over = True

    def save(self, name: str) -> None:
        """Write the thread to a file: JSON if it ends with .json, else Markdown."""
        path = Path(_needed("/save FILE", name)).expanduser()
        text = as_json(self.thread) if path.suffix == ".json" else as_markdown(self.thread)
        try:
            with path.open("w" if path in self.saved else "x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError as error:
            raise WrongUsage(f"{name} is there already; name another file") from error
        except OSError as error:
            raise WrongUsage(f"{name} cannot be written ({error.strerror})") from error
        self.saved.add(path)
        self._say(f"saved in {name}")

    def system(self, text: str) -> None:
        """Tell the model from now on how to answer; without a text no more."""
        self.thread.system = text
        self._say("the system message is changed" if text else "there is no system message any more")


@dataclass(frozen=True, slots=True)
class TypedCommand:
    """What a name after a slash does. `argument` is what follows it."""

    run: Callable[[ChatTerminal, str], None]
    argument: str = ""

    @property
    def summary(self) -> str:
        """The line that `/help` has of it."""
        return (self.run.__doc__ or "").partition("\n")[0]


COMMANDS: Mapping[str, TypedCommand] = {
    "again": TypedCommand(ChatTerminal.again),
    "attach": TypedCommand(ChatTerminal.attach, "FILE"),
    "clear": TypedCommand(ChatTerminal.clear),
    "figures": TypedCommand(ChatTerminal.figures, "on|off"),
    "help": TypedCommand(ChatTerminal.help),
    "model": TypedCommand(ChatTerminal.model, "NAME"),
    "quit": TypedCommand(ChatTerminal.quit),
    "save": TypedCommand(ChatTerminal.save, "FILE"),
    "system": TypedCommand(ChatTerminal.system, "TEXT"),
}


def _needed(usage: str, argument: str) -> str:
    if not argument:
        raise WrongUsage(f"It is {usage}")
    return argument
