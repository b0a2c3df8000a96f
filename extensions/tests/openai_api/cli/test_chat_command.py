"""`chat` in a pipe, against a sidecar in memory."""

import json
from pathlib import Path

import httpx
import pytest

from tests.cli.conftest import Run
from tests.cli.in_memory_sidecar import Body, InMemorySidecar
from tests.openai_api.cli.chat_events import DONE, END, call, delta, end, sent

HELLO = sent(delta(content="Hel"), delta(content="lo"), END) + DONE


def stream(sidecar: InMemorySidecar, *pieces: bytes, fault: Exception | None = None) -> None:
    sidecar.responses["POST", "/v1/chat/completions"] = Body(pieces, fault)


@pytest.mark.parametrize(
    ("arguments", "stdin", "asked"),
    [
        ((), "hi\n", "hi"),
        (("hi",), "", "hi"),
        (("what is it?",), "a text\n", "a text\n\nwhat is it?"),
        (("-aBcDeFgHiJkLmNoPqRs",), "", "-aBcDeFgHiJkLmNoPqRs"),
    ],
)
def test_the_text_of_the_answer_alone_is_printed(
    run: Run, sidecar: InMemorySidecar, arguments: tuple[str, ...], stdin: str, asked: str
) -> None:
    stream(sidecar, HELLO)
    ended = run("chat", "my model", *arguments, stdin=stdin)
    assert (ended.code, ended.stdout, ended.stderr) == (0, "Hello\n", "")
    assert sidecar.sent(0) == {"model": "my model", "messages": [{"role": "user", "content": asked}], "stream": True}


def test_a_pipe_gets_the_text_as_it_is_and_one_line_break_at_its_end(run: Run, sidecar: InMemorySidecar) -> None:
    text = "**a** \x1b[31mred\x1b[0m\r\n\x00\n"
    stream(sidecar, sent(delta(reasoning_content="think", content=text), END) + DONE)
    assert run("chat", "m1", "hi").stdout == text


def test_options_and_files_go_with_the_question(run: Run, sidecar: InMemorySidecar, tmp_path: Path) -> None:
    stream(sidecar, HELLO)
    (tmp_path / "a.png").write_bytes(b"\xff")
    (tmp_path / "b.txt").write_text("text")
    files = ("--attach", str(tmp_path / "a.png"), "--attach", str(tmp_path / "b.txt"))
    run("chat", "m1", "hi", "--system", "be brief", "--temperature", "0", "--max-tokens", "9", *files)
    body = sidecar.sent(0)
    assert (body["temperature"], body["max_tokens"]) == (0, 9)
    system, question = body["messages"]
    assert system == {"role": "system", "content": "be brief"}
    assert [part["type"] for part in question["content"]] == ["image_url", "text", "text"]


def test_a_file_may_be_the_whole_question(run: Run, sidecar: InMemorySidecar, tmp_path: Path) -> None:
    stream(sidecar, HELLO)
    (tmp_path / "b.txt").write_text("text")
    assert run("chat", "m1", "--attach", str(tmp_path / "b.txt")).stdout == "Hello\n"
    assert len(sidecar.sent(0)["messages"][0]["content"]) == 1


def test_json_prints_the_events_with_the_usage(run: Run, sidecar: InMemorySidecar) -> None:
    stream(sidecar, HELLO)
    lines = run("chat", "m1", "hi", "--json").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [delta(content="Hel"), delta(content="lo"), END]
    assert sidecar.sent(0)["stream_options"] == {"include_usage": True}


def test_tool_calls_and_an_early_end_go_to_stderr(run: Run, sidecar: InMemorySidecar) -> None:
    stream(sidecar, sent(call(0, "a", name="f\x1b[2J", arguments="{}"), end("tool_calls")) + DONE)
    ended = run("chat", "m1", "hi")
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "tool call: f\x1b[2J({})\n")
    stream(sidecar, sent(delta(content="a"), end("length")) + DONE)
    ended = run("chat", "m1", "hi")
    assert (ended.stdout, ended.stderr) == ("a\n", "the model stopped early: length\n")


def test_an_error_is_one_line_on_stderr_behind_what_came_and_exit_code_1(run: Run, sidecar: InMemorySidecar) -> None:
    stream(sidecar, sent(delta(content="par"), {"error": {"message": "over\x1b[2Jloaded"}}))
    ended = run("chat", "m1", "hi")
    assert (ended.code, ended.stdout) == (1, "par\n")
    assert ended.stderr == "opensearch-ml-stream: over\x1b[2Jloaded (status 424)\n"
    refused = {"error": {"message": "There is no model", "type": "not_found_error"}}
    sidecar.responses["POST", "/v1/chat/completions"] = httpx.Response(404, json=refused)
    ended = run("chat", "m1", "hi")
    assert (ended.code, ended.stderr) == (1, "opensearch-ml-stream: There is no model (status 404)\n")
    stream(sidecar, sent(delta(content="par")), fault=httpx.ReadError("reset"))
    ended = run("chat", "m1", "hi")
    assert (ended.code, ended.stdout) == (1, "par\n")
    assert "before the response was complete" in ended.stderr


def test_a_login_that_is_refused_is_told_as_by_other_commands(run: Run, sidecar: InMemorySidecar) -> None:
    error = {"error": {"message": "Unauthorized", "type": "authentication_error"}}
    sidecar.responses["POST", "/v1/chat/completions"] = httpx.Response(401, json=error)
    ended = run("chat", "m1", "hi", MLSTREAM_API_KEY="wrong")
    assert sidecar.requests[0].headers["authorization"] == "Bearer wrong"
    assert "the key of MLSTREAM_API_KEY is wrong, expired or revoked; log in with" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("m1",), "Say what to ask"),
        (("m1", "--json"), "Say what to ask"),
        (("m1", "hi", "--attach", "/nowhere"), "/nowhere is no file"),
        (("m1", "hi", "--max-tokens", "x"), "--max-tokens"),
        ((), "MODEL"),
    ],
)
def test_wrong_usage_is_exit_code_2_before_anything_is_sent(
    run: Run, sidecar: InMemorySidecar, arguments: tuple[str, ...], words: str
) -> None:
    ended = run("chat", *arguments)
    assert (ended.code, ended.stdout, sidecar.requests) == (2, "", [])
    assert words in ended.stderr
