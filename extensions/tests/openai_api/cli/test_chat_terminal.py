"""The commands of a conversation on a terminal. What is asked and answered there is in integration_tests."""

import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import httpx
import pytest
from rich.console import Console

from opensearch_ml_stream.extensions.openai_api.cli.chat_terminal import COMMANDS, ChatTerminal, TypedLines
from opensearch_ml_stream.extensions.openai_api.cli.chat_thread import ChatThread
from opensearch_ml_stream.plugin.cli.sidecar_api import SidecarAPI

PNG = {"type": "image_url", "image_url": {"url": "data:image/png;base64,/w=="}}


class Typed(TypedLines):
    """Texts that are typed one after the other, and then Ctrl-D."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = iter(texts)
        self.prompts: list[str] = []

    def read(self, prompt: str) -> str | None:
        self.prompts.append(prompt)
        return next(self._texts, None)


Play = Callable[..., str]


@pytest.fixture
def thread() -> ChatThread:
    thread = ChatThread("m")
    thread.ask("hi", [PNG])
    thread.keep({"role": "assistant", "content": "hello", "reasoning_content": "two\nlines"})
    return thread


@pytest.fixture
def play(thread: ChatThread) -> Play:
    """A function that types texts, and returns what is shown; no text may be asked."""

    def typing(*texts: str) -> str:
        shown = io.StringIO()
        with httpx.Client() as client:
            console = Console(file=shown, width=200, highlight=False)
            ChatTerminal(SidecarAPI(client), thread, [], console, Typed(texts)).converse()
        return shown.getvalue()

    return typing


def test_it_says_how_to_get_help_and_help_has_every_command(play: Play) -> None:
    assert play() == "m: /help shows the commands; Ctrl-C stops an answer, Ctrl-D ends\n"
    shown = play("/help")
    assert all(f"/{name} " in shown for name in COMMANDS)
    assert all(command.summary and command.summary in shown for command in COMMANDS.values())


def test_an_unknown_command_says_what_there_is_and_an_empty_line_does_nothing(play: Play, thread: ChatThread) -> None:
    before = list(thread.messages)
    shown = play("/etc/passwd \x1b[2J", "", "  ")
    assert "There is no command /etc/passwd, but /again, /attach, " in shown
    assert thread.messages == before


def test_model_and_system_hold_from_the_next_question_on(play: Play, thread: ChatThread) -> None:
    play("/model other one", "/system be brief ")
    assert (thread.model, thread.system) == ("other one", "be brief")
    assert "There is no system message any more" in play("/system").replace("there", "There")
    assert thread.system == ""


def test_clear_begins_a_new_thread_with_the_same_system_message(play: Play, thread: ChatThread) -> None:
    play("/system be brief", "/clear")
    assert (thread.system, thread.messages) == ("be brief", [])
    assert "There is nothing to ask again" in play("/again")


def test_quit_ends_the_conversation(play: Play, thread: ChatThread) -> None:
    play("/quit", "/model other")
    assert thread.model == "m"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("/model", "It is /model NAME"),
        ("/attach", "It is /attach FILE"),
        ("/save", "It is /save FILE"),
        ("/figures", "/figures needs on or off"),
        ("/attach /nowhere", "/nowhere is no file"),
        ("/save /nowhere/a.md", "/nowhere/a.md cannot be written (No such file or directory)"),
    ],
)
def test_a_command_that_lacks_something_says_so_and_the_thread_goes_on(play: Play, typed: str, words: str) -> None:
    assert f"{words}\nb answers" in play(typed, "/model b")


def test_a_thread_is_saved_as_markdown(play: Play, thread: ChatThread, tmp_path: Path) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    thread.ask("then?")
    thread.keep({"role": "assistant", "content": None, "tool_calls": [call]})
    thread.add_result("1")
    play("/system be brief", f"/save {tmp_path / 'a.md'}")
    assert (tmp_path / "a.md").read_text().split("\n\n") == [
        "# m",
        *("## System", "be brief"),
        *("## Question", "(image)", "hi"),
        *("## Answer", "> two\n> lines", "hello"),
        *("## Question", "then?"),
        *("## Answer", "Tool call: `f({})`"),
        *("## Result of a tool", "1\n"),
    ]


def test_a_thread_is_saved_as_json_that_can_be_sent(play: Play, thread: ChatThread, tmp_path: Path) -> None:
    play(f"/save {tmp_path / 'a.json'}")
    assert json.loads((tmp_path / "a.json").read_bytes()) == {"model": "m", "messages": thread.messages}


def test_saving_replaces_what_this_conversation_saved_and_nothing_else(play: Play, tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    play(f"/save {file}", "/model b", f"/save {file}")
    assert file.read_text().startswith("# b\n")
    assert f"{file} is there already; name another file" in play("/model c", f"/save {file}")
    assert file.read_text().startswith("# b\n")


def test_the_prompt_asks_for_the_result_of_a_tool_call_by_its_name(thread: ChatThread) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f\x1b[2J", "arguments": "{}"}}
    thread.keep({"role": "assistant", "content": None, "tool_calls": [call]})
    typed = Typed(["/clear"])
    with httpx.Client() as client:
        ChatTerminal(SidecarAPI(client), thread, [], Console(file=io.StringIO()), typed).converse()
    assert typed.prompts == ["result of f> ", "> "]
