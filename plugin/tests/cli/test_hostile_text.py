"""What servers, models and their names say, on a terminal and behind a pipe: each command, each of its two outputs."""

import json
import sys
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.wire_format import NDJSON
from opensearch_ml_stream.plugin.settings.endpoint_permissions import PATTERNS, PRIVATE_ALLOWED, PRIVATE_PATTERNS
from tests.cli.conftest import Ended, Run
from tests.cli.in_memory_sidecar import InMemorySidecar

# The clipboard, the window's title, the whole screen, a colour in one character, the direction of writing.
HOSTILE = "\x1b]52;c;ZXZpbA==\x07\x1b]0;evil\x07\x1b[2J\x9b31m\u202e\u200f[bold]:smile:"
SHOWN = "31m[bold]:smile:"
UNPRINTABLE = [*map(chr, range(8)), "\x1b]", "\x1b[2J", "\x9b", "\u202e", "\u200f"]


def evil(mark: str) -> str:
    return f"<{mark}{HOSTILE}>"


def shown(mark: str) -> str:
    return f"<{mark}{SHOWN}>"


def with_stream(sidecar: InMemorySidecar) -> None:
    half, rest = evil("text")[:10], evil("text")[10:]
    call = ToolCall(0, "c", evil("tool"), evil("arguments"))
    told = {"warnings": [evil("warning")]}
    ending = NDJSON.ending(Ending(evil("finish"), None, Usage(1, 2), evil("model")), told)
    sidecar.stream(NDJSON.chunks([Chunk("", evil("thought")), Chunk(half), Chunk(rest, "", (call,))]), ending)


def with_error(path: str, method: str = "POST") -> Callable[[InMemorySidecar], None]:
    def respond(sidecar: InMemorySidecar) -> None:
        error = {"error": {"type": "x", "reason": evil("reason")}, "status": 400}
        sidecar.responses[method, path] = httpx.Response(400, json=error)

    return respond


def with_json(method: str, path: str, value: Any) -> Callable[[InMemorySidecar], None]:
    def respond(sidecar: InMemorySidecar) -> None:
        sidecar.responses[method, path] = value

    return respond


def with_stream_error(sidecar: InMemorySidecar) -> None:
    sidecar.stream(json.dumps({"error": {"reason": evil("reason"), "type": "x"}, "status": 400}).encode() + b"\n")


WHOLE = {
    "inference_results": [{"output": [{"name": "response", "dataAsMap": {"response": evil("text")}}]}],
    "warnings": [evil("warning")],
}
MODEL = {"name": evil("name\n\tsecond"), "model_state": evil("state")}
HITS = {"hits": {"hits": [{"_id": evil("id"), "_source": MODEL}]}}
SETTINGS = {
    "defaults": {PATTERNS: [evil("pattern")], PRIVATE_PATTERNS: [], PRIVATE_ALLOWED: "false"},
    "persistent": {},
}
ALL_SETTINGS = "/_settings?include_defaults=true&flat_settings=true"
SEARCH = "/models/_search"
CASES: list[tuple[list[str], Callable[[InMemorySidecar], None], list[str]]] = [
    (["predict", "m1", "--stream", "hi"], with_stream, ["thought", "tool", "arguments", "warning", "finish", "model"]),
    (["predict", "m1", "hi"], with_json("POST", "/models/m1/_predict", WHOLE), ["text", "warning"]),
    (["predict", "m1", "hi"], with_error("/models/m1/_predict"), ["reason"]),
    (["predict", "m1", "--stream", "hi"], with_stream_error, ["reason"]),
    (["models", "list"], with_json("POST", SEARCH, HITS), ["id", "name second", "state"]),
    (["models", "show", "m1"], with_error("/models/m1", "GET"), ["reason"]),
    (["endpoints", "list"], with_json("GET", ALL_SETTINGS, SETTINGS), ["pattern"]),
    (["models", "list"], with_json("POST", SEARCH, ValueError(evil("defect"))), ["defect"]),
]


@pytest.fixture
def on_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    def run_on_a_terminal(*arguments: str) -> Ended:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        return run(*arguments, COLUMNS="250", TERM="dumb")

    return run_on_a_terminal


@pytest.mark.parametrize(("arguments", "respond", "marks"), CASES)
def test_on_a_terminal_what_others_wrote_is_shown_as_text_and_obeyed_in_nothing(
    on_a_terminal: Run,
    sidecar: InMemorySidecar,
    arguments: list[str],
    respond: Callable[[InMemorySidecar], None],
    marks: list[str],
) -> None:
    respond(sidecar)
    ended = on_a_terminal(*arguments)
    printed = ended.stdout + ended.stderr
    assert [unprintable for unprintable in UNPRINTABLE if unprintable in printed] == []
    assert [mark for mark in marks if shown(mark) not in printed] == []


def test_a_sequence_that_comes_in_two_pieces_is_none(on_a_terminal: Run, sidecar: InMemorySidecar) -> None:
    with_stream(sidecar)
    ended = on_a_terminal("predict", "m1", "--stream", "hi")
    assert ended.stdout == "<text]52;c;ZXZpbA==31m[bold]:smile:>\n"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_each_output_is_judged_by_itself(
    run: Run, sidecar: InMemorySidecar, monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    with_stream(sidecar)
    ended = run("predict", "m1", "--stream", "hi")
    assert ended.stdout == evil("text") + "\n"
    assert (evil("thought") in ended.stderr, evil("tool") in ended.stderr) == (not is_terminal, not is_terminal)


@pytest.mark.parametrize("arguments", [["models", "show", "m1"], ["predict", "m1", "hi", "--json"]])
def test_json_loses_nothing_on_a_terminal_and_is_as_it_was_behind_a_pipe(
    run: Run, sidecar: InMemorySidecar, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    value = {"name": HOSTILE}
    sidecar.responses["GET", "/models/m1"] = sidecar.responses["POST", "/models/m1/_predict"] = value
    piped = run(*arguments).stdout
    assert "\u202e" in piped and json.loads(piped) == value
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    printed = run(*arguments).stdout
    assert [unprintable for unprintable in UNPRINTABLE if unprintable in printed] == []
    assert json.loads(printed) == value


def test_a_name_of_two_lines_is_one_row_behind_a_pipe_too(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.responses["POST", "/models/_search"] = HITS
    assert run("models", "list").stdout == f"{evil('id')}\t{evil('name second')}\t{evil('state')}\n"
