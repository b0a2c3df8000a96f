"""`chat` as its users meet it: on a terminal, and in a pipe, with a model behind a sidecar."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from integration_tests.cli.commands import COMMAND, environment
from integration_tests.cli.terminal import CTRL_C, CTRL_D, ENTER, UP, Terminal, on_a_terminal
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import PATIENCE_SECONDS, eventually
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    SSE_HEAD,
    Act,
    FakeProvider,
    Gate,
    Request,
    Script,
    chunk,
    json_response,
    sse_event,
)
from integration_tests.support.sidecars import Sidecar

PROMPT = "> "


def delta(finish: str | None = None, **members: Any) -> bytes:
    return chunk(sse_event({"choices": [{"index": 0, "delta": members, "finish_reason": finish}]}))


END = [delta("stop"), chunk(b"data: [DONE]\n\n"), LAST_CHUNK]


@dataclass
class ScriptedModel:
    """A model that answers by what is asked last, or with the number of the request."""

    gate: Gate = field(default_factory=Gate)
    bodies: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, request: Request) -> Script:
        self.bodies.append(request.json())
        asked = self.asked(-1)[-1]
        if asked == "limit":
            return json_response({"error": {"message": "Slow down"}}, 429)
        steps: dict[str, Sequence[bytes | Act | Gate]] = {
            "wait": [delta(content="Hel"), delta(content="lo"), Act.WAIT],
            "mute": [Act.WAIT],
            "pause": [delta(content="**a** "), delta(content="b "), self.gate, delta(content="c"), *END],
            "hostile": [delta(content="\x1b[2J\x1b]0;t\x07x"), *END],
        }
        answer = f"answer {len(self.bodies)}"
        return [SSE_HEAD, *steps.get(asked, [delta(reasoning_content="I think"), delta(content=answer), *END])]

    def asked(self, number: int) -> list[str]:
        """The contents of the messages of one request."""
        return [message["content"] for message in self.bodies[number]["messages"]]


@dataclass(frozen=True)
class Served:
    model: ScriptedModel
    provider: FakeProvider
    sidecar: Sidecar

    def terminal(self) -> Any:
        return on_a_terminal("chat", "chat/m", MLSTREAM_URL=self.sidecar.url, TERM="xterm")


@pytest.fixture(scope="module")
def running(shared_sidecar: Sidecar) -> Iterator[list[Any]]:
    playing: list[Any] = [None]
    with background_provider(lambda request: playing[0](request)) as provider:
        shared_sidecar.create_model(openai(provider.url), name="chat/m")
        playing.append(provider)
        yield playing


@pytest.fixture
def served(running: list[Any], shared_sidecar: Sidecar) -> Served:
    running[0] = ScriptedModel()
    return Served(running[0], running[1], shared_sidecar)


def ask(terminal: Terminal, question: str) -> None:
    terminal.type(question)
    terminal.read_until(question)  # as the terminal echoes it


def test_what_is_asked_is_answered_and_the_thread_goes_on(served: Served) -> None:
    with served.terminal() as terminal:
        terminal.read_until(PROMPT)
        ask(terminal, "one")
        terminal.read_until("answer 1")
        terminal.read_until(PROMPT)
        ask(terminal, "two")
        terminal.read_until("answer 2")
        terminal.read_until(PROMPT)
        terminal.press(CTRL_D)
    assert served.model.asked(1) == ["one", "answer 1", "two"]


def test_an_answer_is_drawn_while_it_comes(served: Served) -> None:
    with served.terminal() as terminal:
        terminal.read_until(PROMPT)
        terminal.type("pause")
        terminal.read_until("\x1b[1ma\x1b[0m b")  # before anything follows it
        served.model.gate.open()
        terminal.read_until("\x1b[1ma\x1b[0m b c")
        terminal.read_until(PROMPT)
        terminal.interrupt()


def test_ctrl_c_stops_an_answer_keeps_what_came_and_closes_the_stream(served: Served) -> None:
    disconnects = served.provider.disconnects
    with served.terminal() as terminal:
        terminal.read_until(PROMPT)
        ask(terminal, "wait")
        terminal.read_until("Hello")
        terminal.press(CTRL_C)
        terminal.read_until("stopped")
        eventually(lambda: served.provider.disconnects == disconnects + 1)
        terminal.read_until(PROMPT)
        ask(terminal, "go on")
        terminal.read_until("answer 2")
        terminal.read_until(PROMPT)
        terminal.interrupt()
    assert served.model.asked(1) == ["wait", "Hello", "go on"]


def test_ctrl_c_before_the_first_word_leaves_the_question_to_be_asked_again(served: Served) -> None:
    with served.terminal() as terminal:
        terminal.read_until(PROMPT)
        ask(terminal, "mute")
        eventually(lambda: len(served.model.bodies) == 1)
        terminal.press(CTRL_C)
        terminal.read_until("stopped; /again asks again")
        terminal.read_until(PROMPT)
        ask(terminal, "another")
        terminal.read_until("answer 2")
        terminal.read_until(PROMPT)
        terminal.interrupt()
    assert served.model.asked(1) == ["another"]


def test_again_asks_the_last_question_again_without_its_answer(served: Served) -> None:
    with served.terminal() as terminal:
        terminal.read_until(PROMPT)
        ask(terminal, "one")
        terminal.read_until("answer 1")
        terminal.read_until(PROMPT)
        ask(terminal, "/again")
        terminal.read_until("answer 2")
        terminal.read_until(PROMPT)
        terminal.press(CTRL_D)
    assert served.model.asked(1) == ["one"]


def test_an_error_is_a_sentence_and_the_thread_stays(served: Served) -> None:
    with served.terminal() as terminal:
        terminal.read_until(PROMPT)
        ask(terminal, "one")
        terminal.read_until("answer 1")
        terminal.read_until(PROMPT)
        ask(terminal, "limit")
        error = terminal.read_until("/again asks again")
        assert "Slow" in error and "Traceback" not in error
        terminal.read_until(PROMPT)
        ask(terminal, "three")
        terminal.read_until("answer 3")
        terminal.read_until(PROMPT)
        terminal.press(CTRL_D)
    assert served.model.asked(-1) == ["one", "answer 1", "three"]


def test_arrow_keys_bring_back_what_was_typed_and_nothing_of_it_is_on_disk(served: Served, tmp_path: Path) -> None:
    variables = {"MLSTREAM_URL": served.sidecar.url, "HOME": str(tmp_path), "TERM": "xterm"}
    with on_a_terminal("chat", "chat/m", **variables) as terminal:
        terminal.read_until(PROMPT)
        for number, keys in enumerate(("first", "second", UP + UP, UP), start=1):
            terminal.press(keys + ENTER)
            terminal.read_until(f"answer {number}")
            terminal.read_until(PROMPT)
        terminal.press(CTRL_D)
    assert [served.model.asked(number)[-1] for number in range(4)] == ["first", "second", "first", "first"]
    assert list(tmp_path.iterdir()) == []


def test_a_question_may_have_several_lines_typed_or_pasted(served: Served) -> None:
    with served.terminal() as terminal:
        terminal.read_until(PROMPT)
        terminal.press("one\\" + ENTER)
        terminal.read_until("… ")
        terminal.press("two" + ENTER)
        terminal.read_until("answer 1")
        terminal.read_until(PROMPT)
        terminal.press("\x1b[200~three\nfour\x1b[201~" + ENTER)
        terminal.read_until("answer 2")
        terminal.read_until(PROMPT)
        terminal.press(CTRL_D)
    assert [served.model.asked(number)[-1] for number in range(2)] == ["one\ntwo", "three\nfour"]


def test_ctrl_c_gives_up_a_line_that_has_begun_and_ends_at_an_empty_one(served: Served) -> None:
    with served.terminal() as terminal:
        terminal.read_until(PROMPT)
        terminal.press("half")
        terminal.read_until("half")
        terminal.interrupt()
        terminal.read_until(PROMPT)
        terminal.press("more\\" + ENTER)
        terminal.read_until("… ")
        terminal.interrupt()
        terminal.read_until(PROMPT)
        terminal.interrupt()
    assert served.model.bodies == []


def test_a_thread_with_its_figures_is_saved(served: Served, tmp_path: Path) -> None:
    with served.terminal() as terminal:
        terminal.read_until(PROMPT)
        ask(terminal, "/figures on")
        terminal.read_until(PROMPT)
        ask(terminal, "one")
        terminal.read_until("first token ")
        terminal.read_until(PROMPT)
        ask(terminal, f"/save {tmp_path / 'a.json'}")
        terminal.read_until("saved in")
        terminal.read_until(PROMPT)
        terminal.press(CTRL_D)
    saved = json.loads((tmp_path / "a.json").read_bytes())
    assert [message["content"] for message in saved["messages"]] == ["one", "answer 1"]
    assert served.model.bodies[0]["stream_options"] == {"include_usage": True}


def test_a_pipe_gets_the_answer_alone_while_it_comes(served: Served) -> None:
    command, pipe = [*COMMAND, "chat", "chat/m", "--url", served.sidecar.url], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment()) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(b"pause\n")
        process.stdin.close()
        read = b""
        while read != b"**a** b ":
            piece = os.read(process.stdout.fileno(), 4096)
            assert piece, read
            read += piece
        served.model.gate.open()
        assert (process.stdout.read(), process.stderr.read()) == (b"c\n", b"")
        assert process.wait(PATIENCE_SECONDS) == 0


def test_a_question_on_the_command_line_is_answered_once_and_cleaned_for_a_terminal(served: Served) -> None:
    with on_a_terminal("chat", "chat/m", "hostile", MLSTREAM_URL=served.sidecar.url, TERM="xterm") as terminal:
        shown = terminal.read_until("x")
    assert "\x1b[2J" not in shown and "\x1b]" not in shown
    assert len(served.model.bodies) == 1
