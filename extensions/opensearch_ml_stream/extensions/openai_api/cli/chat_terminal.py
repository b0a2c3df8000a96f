"""A conversation on a terminal: each line is a question or a command."""

import readline
import signal
import sys
import termios
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

from rich.console import Console

from opensearch_ml_stream.extensions.openai_api.cli.answer_screen import draw_answer, say
from opensearch_ml_stream.extensions.openai_api.cli.attached_file import read_attachment
from opensearch_ml_stream.extensions.openai_api.cli.chat_answer import AnswerFigures, ChatAnswer, read_events
from opensearch_ml_stream.extensions.openai_api.cli.chat_thread import ChatThread, as_json, as_markdown
from opensearch_ml_stream.extensions.openai_api.extension import CHAT_PATH
from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed, WrongUsage
from opensearch_ml_stream.plugin.cli.printing import print_text, printable
from opensearch_ml_stream.plugin.cli.sidecar_api import SidecarAPI
from opensearch_ml_stream.plugin.cli.terminal_console import TerminalConsole

T = TypeVar("T")

_LOCAL_MODES = 3  # index in what tcgetattr returns


class StopKey(AbstractContextManager["StopKey"]):
    """Lets Ctrl-C end the reading of an answer, but not while a part of it is drawn.

    Inside the context, typed characters are not shown, and are read at the next prompt.
    """

    def __init__(self) -> None:
        self.is_pressed = False
        self._is_reading = False
        self._handler_before: Any = signal.SIG_DFL
        self._modes_before: list[Any] = []

    def __enter__(self) -> Self:
        self._modes_before = termios.tcgetattr(sys.stdin)
        silent = list(self._modes_before)
        silent[_LOCAL_MODES] &= ~termios.ECHO
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, silent)
        self._handler_before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._handler_before)
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._modes_before)

    def until_pressed(self, items: Iterator[T]) -> Iterator[T]:
        """Yield the items that come before the key is pressed."""
        while True:
            try:
                self._is_reading = True  # from here on the key raises; it may have been pressed before
                if self.is_pressed:
                    return
                for item in items:
                    self._is_reading = False
                    yield item
                    break
                else:
                    return
            except KeyboardInterrupt:
                return
            finally:
                self._is_reading = False

    def _press(self, number: int, frame: FrameType | None) -> None:
        self.is_pressed = True
        if self._is_reading:
            raise KeyboardInterrupt


_MORE = "… "


class TypedLines:
    """Reads texts of one or more lines, with a history in memory: the arrow keys bring earlier ones back."""

    def __init__(self) -> None:
        readline.set_auto_history(False)
        readline.parse_and_bind("set enable-bracketed-paste on")  # pasted lines are one text

    def read(self, prompt: str) -> str | None:
        """Return a text, "" if it was abandoned (Ctrl-C), None at the end (Ctrl-D, or Ctrl-C at an empty prompt).

        A line that ends with a backslash goes on in the next.
        """
        lines: list[str] = []
        try:
            while True:
                line = input(_MORE if lines else prompt)
                lines.append(line.removesuffix("\\"))
                if not line.endswith("\\"):
                    break
        except EOFError:
            print_text()
            return None
        except KeyboardInterrupt:
            print_text()
            return "" if lines or readline.get_line_buffer() else None
        text = "\n".join(lines).encode("utf-8", "replace").decode()  # without halves of surrogate pairs
        if text.strip():
            readline.add_history(text)
        return text


_SWITCHES = {"on": True, "off": False}


@dataclass(slots=True)
class ChatTerminal:
    """A thread on a terminal. `attached` is sent with the next question."""

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
        self._say("A line that ends with a backslash continues on the next; pasted lines are one text.")

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
    """A command after a slash. `argument` is what follows its name."""

    run: Callable[[ChatTerminal, str], None]
    argument: str = ""

    @property
    def summary(self) -> str:
        """Its line in `/help`."""
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
