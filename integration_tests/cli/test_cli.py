"""The command line as its users meet it: a process, its two outputs, its exit code."""

import json
import os
import signal
import subprocess
import time
from typing import Any

import pytest
from integration_tests.cli.commands import COMMAND, Run, environment, routes, run_here, run_process
from integration_tests.support.background_provider import background_provider, left_within
from integration_tests.support.fake_provider import LAST_CHUNK, Act, Script, chunk, head

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.wire_format import NDJSON

HEAD = head(content_type="application/x-ndjson", transfer_encoding="chunked")
ENDING = chunk(NDJSON.ending(Ending("stop", "stop", Usage(2, 3), "gpt"), {}))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return run_here(monkeypatch, capsys)


def text(*values: str) -> list[bytes]:
    return [chunk(NDJSON.chunks([Chunk(value)])) for value in values]


def stream(*pieces: bytes) -> Script:
    return [HEAD, *pieces, ENDING, LAST_CHUNK]


def test_help_names_every_command_and_the_version_is_the_packages() -> None:
    shown = run_process("--help")
    assert shown.returncode == 0
    assert all(name in shown.stdout for name in ("serve", "demo", "blueprints", "models", "predict", "settings"))
    assert run_process("--version").stdout.strip()[0].isdigit()


def test_a_streamed_answer_appears_as_it_arrives() -> None:
    script: Script = [HEAD, *text("Hel"), 0.4, *text("lo"), ENDING, LAST_CHUNK]
    with background_provider(script) as server:
        command = [*COMMAND, "predict", "m1", "--stream", "hi", "--url", server.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()) as process:
            assert process.stdout is not None
            first = os.read(process.stdout.fileno(), 100)
            came = time.monotonic()
            rest = process.stdout.read()
            waited = time.monotonic() - came
    assert (first, rest, process.returncode) == (b"Hel", b"lo\n", 0)
    assert waited > 0.2
    assert server.requests[0].json() == {"parameters": {"inputs": "hi"}}


def test_only_the_answer_goes_to_stdout(run: Run) -> None:
    pieces = chunk(NDJSON.chunks([Chunk("", "I think", (ToolCall(0, "c", "look_up", '{"a":1}'),)), Chunk("yes")]))
    with background_provider(stream(pieces)) as server:
        shown = run("predict", "m1", "--stream", "hi", "--url", server.url)
    assert shown.stdout == "yes\n"
    assert "I think" in shown.stderr
    assert 'tool call: look_up({"a":1})' in shown.stderr


def test_json_prints_the_objects_as_they_were_sent(run: Run) -> None:
    with background_provider(stream(*text("a"))) as server:
        shown = run("predict", "m1", "--stream", "--json", "hi", "--url", server.url)
    objects = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [one["inference_results"][0]["output"][0]["dataAsMap"]["response"] for one in objects] == ["a", ""]


def test_the_text_may_come_from_stdin_with_further_parameters_beside_it(run: Run) -> None:
    with background_provider(stream()) as server:
        run("predict", "m1", "--stream", "-", "--set", "temperature=0=0", "--url", server.url, stdin="long text\n")
    assert server.requests[0].json() == {"parameters": {"inputs": "long text\n", "temperature": "0=0"}}


@pytest.mark.parametrize(
    "data",
    [
        {"response": "whole"},
        {"choices": [{"message": {"content": "whole"}}]},
        {"content": [{"type": "text", "text": "whole"}]},
    ],
)
def test_without_stream_the_whole_answers_text_is_shown(run: Run, data: dict[str, Any]) -> None:
    answer = {"inference_results": [{"output": [{"name": "response", "dataAsMap": data}]}]}
    with background_provider(routes({("POST", "/models/m1/_predict"): answer})) as server:
        assert run("predict", "m1", "hi", "--url", server.url).stdout == "whole\n"
        assert json.loads(run("predict", "m1", "hi", "--json", "--url", server.url).stdout) == answer


def test_an_answer_without_text_is_shown_as_json(run: Run) -> None:
    answer = {"inference_results": [{"output": [{"name": "e", "data_type": "FLOAT32", "shape": [1], "data": [0.5]}]}]}
    with background_provider(routes({("POST", "/models/m1/_predict"): answer})) as server:
        assert json.loads(run("predict", "m1", "hi", "--url", server.url).stdout) == answer


def test_an_error_of_the_server_is_one_line_with_what_to_do_and_exit_code_1(run: Run) -> None:
    with background_provider(routes({})) as server:
        shown = run("predict", "m1", "--stream", "hi", "--url", server.url)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr.splitlines() == [
        "opensearch-ml-stream: Failed to find model (status 404); see the ids with `opensearch-ml-stream models list`"
    ]


def test_an_answer_that_breaks_off_is_shown_so_far_and_exit_code_1(run: Run) -> None:
    error = chunk(NDJSON.error(UpstreamError("overloaded")))
    with background_provider([HEAD, *text("par", "t"), error, LAST_CHUNK]) as server:
        shown = run("predict", "m1", "--stream", "hi", "--url", server.url)
    assert (shown.returncode, shown.stdout) == (1, "part\n")
    assert shown.stderr == "opensearch-ml-stream: overloaded (status 424)\n"


def test_a_connection_that_is_cut_is_an_error_too(run: Run) -> None:
    with background_provider([HEAD, *text("part"), 0.05, Act.RESET]) as server:
        shown = run("predict", "m1", "--stream", "hi", "--url", server.url)
    assert (shown.returncode, shown.stdout) == (1, "part\n")
    assert "before the answer was complete" in shown.stderr


def test_a_server_that_cannot_be_reached_is_exit_code_3_and_no_password_is_shown() -> None:
    shown = run_process("models", "list", MLSTREAM_URL="http://me:hunter2@127.0.0.1:1")
    assert shown.returncode == 3
    assert "Cannot reach http://127.0.0.1:1" in shown.stderr
    assert "hunter2" not in shown.stderr
    assert len(shown.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["predict"], "MODEL_ID"),
        (["predict", "m1"], "Say what to ask"),
        (["predict", "m1", "x", "--set", "novalue"], "--set must be of the form name=value"),
        (["models", "list", "--url", "localhost:9510"], "--url must be of the form http://host:port"),
        (["models", "list", "--user", "me"], "--user must be of the form name:password"),
        (
            ["models", "create", "--blueprint", "nope"],
            "No blueprint is named nope; `opensearch-ml-stream blueprints list`",
        ),
        (["models", "create", "--blueprint", "openai-chat"], "needs the credential [openAI_key]"),
        (["models", "create", "--blueprint", "openai-chat", "--credential", "x=1"], "it takes openAI_key"),
        (["models", "create", "--blueprint", "openai-chat", "--credential", "openAI_key=env:NOPE"], "NOPE is not set"),
        (["models", "create", "--blueprint", "openai-chat", "--credential", "openAI_key=file:/nope"], "cannot read"),
        (["serve", "--config", "/nope.yml"], "Cannot read the configuration file /nope.yml"),
        (["serve", "--port", "70000"], "expected a whole number from 0 to 65535"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what_is_wanted(run: Run, arguments: list[str], said: str) -> None:
    shown = run(*arguments)
    assert shown.returncode == 2
    assert said in " ".join(shown.stderr.split())


def test_a_store_that_is_none_is_refused_before_anything_is_served() -> None:
    shown = run_process("serve", "--port", "0", "--store", "ftp://x")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert "The store must be" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_ctrl_c_ends_a_stream_at_once_with_exit_code_130() -> None:
    with background_provider([HEAD, *text("part"), Act.WAIT]) as server:
        command = [*COMMAND, "predict", "m1", "--stream", "hi", "--url", server.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
            assert process.stdout is not None and process.stderr is not None
            os.read(process.stdout.fileno(), 100)
            process.send_signal(signal.SIGINT)
            code = process.wait(2)
            assert b"Traceback" not in process.stderr.read()
        assert code == 130
        assert left_within(server, 1)


def test_blueprints_are_listed_and_shown_with_what_they_need(run: Run) -> None:
    listed = run("blueprints", "list")
    names = [line.split("\t")[0] for line in listed.stdout.splitlines()]
    assert {"openai-chat", "anthropic-messages"} <= set(names)
    shown = run("blueprints", "show", "openai-chat").stdout
    assert "--credential openAI_key=" in shown
    assert "opensearch-ml-stream models create --blueprint openai-chat" in shown
    body = json.loads(run("blueprints", "show", "openai-chat", "--json").stdout)
    assert body["protocol"] == "http"


def test_settings_are_listed_with_the_values_that_hold_here_but_no_password(run: Run) -> None:
    shown = run("settings", MLSTREAM_PORT="1234", MLSTREAM_STORE="https://me:hunter2@host:9200")
    values = {line.split("\t")[0]: line.split("\t")[1] for line in shown.stdout.splitlines()}
    assert values["opensearch_ml_stream.port"] == "1234"
    assert values["opensearch_ml_stream.store"] == "https://***@host:9200"


def test_a_reader_that_closes_the_pipe_ends_the_command_without_a_trace() -> None:
    with background_provider(stream(*text(*["x" * 10_000] * 50))) as server:
        command = [*COMMAND, "predict", "m1", "--stream", "hi", "--url", server.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
            assert process.stdout is not None and process.stderr is not None
            process.stdout.close()
            assert b"Traceback" not in process.stderr.read()
