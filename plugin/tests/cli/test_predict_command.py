"""`predict` against a sidecar in memory: the response on stdout, all else on stderr."""

import gzip
import json
import sys
from typing import Any

import httpx
import pytest

from opensearch_ml_stream.client import Chunk
from opensearch_ml_stream.connectors.chunks import Chunk as SentChunk
from opensearch_ml_stream.connectors.chunks import Ending, ToolCall
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.wire_format import NDJSON
from opensearch_ml_stream.plugin.cli.predict_command import show_stream
from tests.cli.conftest import Run
from tests.cli.in_memory_sidecar import ENDING, Body, InMemorySidecar, text


def test_a_streams_text_is_printed_with_one_line_break_at_its_end(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.stream(text("Hel"), text("lo"), ENDING)
    ended = run("predict", "m1", "--stream", "hi")
    assert (ended.code, ended.stdout, ended.stderr) == (0, "Hello\n", "")
    assert sidecar.sent(0) == {"parameters": {"inputs": "hi"}}


def test_a_text_that_ends_its_line_itself_gets_no_further_line_break(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.stream(text("Hello\n"), ENDING)
    assert run("predict", "m1", "--stream", "hi").stdout == "Hello\n"


def test_a_stream_that_a_proxy_has_compressed_is_read_too(run: Run, sidecar: InMemorySidecar) -> None:
    body = Body([gzip.compress(text("Hel") + text("lo") + ENDING)])
    sidecar.responses["POST", "/models/m1/_predict/stream"] = httpx.Response(
        200, headers={"content-encoding": "gzip"}, stream=body
    )
    assert run("predict", "m1", "--stream", "hi").stdout == "Hello\n"
    assert "gzip" in sidecar.requests[0].headers["accept-encoding"]


def test_reasoning_and_tool_calls_go_to_stderr(run: Run, sidecar: InMemorySidecar) -> None:
    fragments = [ToolCall(0, "c", "look_up", '{"a":'), ToolCall(0, None, None, "1}"), ToolCall(1, "d", "stop", "")]
    chunks = [SentChunk("", "I think", tuple(fragments[:1])), SentChunk("yes", "", tuple(fragments[1:]))]
    sidecar.stream(NDJSON.chunks(chunks), ENDING)
    ended = run("predict", "m1", "--stream", "hi")
    assert ended.stdout == "yes\n"
    assert "I think" in ended.stderr
    assert ended.stderr.endswith('tool call: look_up({"a":1})\ntool call: stop()\n')


@pytest.mark.parametrize(
    ("finish_reason", "stderr"), [("length", "the model stopped early: length\n"), ("tool_calls", ""), (None, "")]
)
def test_a_response_that_was_cut_by_the_model_is_told_on_stderr(
    capsys: pytest.CaptureFixture[str], finish_reason: str | None, stderr: str
) -> None:
    show_stream([Chunk("a"), Chunk(is_last=True, finish_reason=finish_reason)])
    assert capsys.readouterr() == ("a\n", stderr)


@pytest.mark.parametrize(
    ("last", "shown"),
    [
        (
            Chunk(is_last=True, model="gpt", usage={"input_tokens": 2, "output_tokens": 3}),
            "gpt, 2 input tokens, 3 output",
        ),
        (Chunk(is_last=True), "\n"),
    ],
)
def test_on_a_terminal_model_and_usage_are_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, last: Chunk, shown: str
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    show_stream([Chunk("a"), last])
    assert shown in capsys.readouterr().err


def test_what_the_sidecar_warns_of_goes_to_stderr(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.stream(text("a"), NDJSON.ending(Ending("stop"), {"warnings": ["did you mean [b]?"]}))
    ended = run("predict", "m1", "--stream", "hi")
    assert (ended.stdout, ended.stderr) == ("a\n", "warning: did you mean [b]?\n")
    output = {"name": "response", "dataAsMap": {"response": "a"}}
    whole = {"inference_results": [{"output": [output]}], "warnings": ["did you mean [b]?"]}
    sidecar.responses["POST", "/models/m1/_predict"] = whole
    ended = run("predict", "m1", "hi")
    assert (ended.stdout, ended.stderr) == ("a\n", "warning: did you mean [b]?\n")
    assert json.loads(run("predict", "m1", "hi", "--json").stdout) == whole


def test_json_prints_the_objects_as_they_were_sent(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.stream(text("a"), ENDING)
    lines = run("predict", "m1", "--stream", "--json", "hi").stdout.splitlines()
    outputs = [json.loads(line)["inference_results"][0]["output"][0]["dataAsMap"] for line in lines]
    assert [output["response"] for output in outputs] == ["a", ""]


def test_the_question_may_come_from_stdin_with_further_parameters_beside_it(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.stream(ENDING)
    run("predict", "m1", "--stream", "-", "--set", "temperature=0=0", stdin="long text\n")
    assert sidecar.sent(0) == {"parameters": {"inputs": "long text\n", "temperature": "0=0"}}


@pytest.mark.parametrize(
    "data",
    [
        {"response": "whole"},
        {"choices": [{"message": {"content": "whole"}}]},
        {"content": [{"type": "text", "text": "whole"}]},
        {"choices": [], "content": [{"text": "whole"}]},
    ],
)
def test_without_stream_the_text_of_the_whole_response_is_printed(
    run: Run, sidecar: InMemorySidecar, data: dict[str, Any]
) -> None:
    response = {"inference_results": [{"output": [{"name": "response", "dataAsMap": data}]}]}
    sidecar.responses["POST", "/models/m1/_predict"] = response
    assert run("predict", "m1", "hi").stdout == "whole\n"
    assert json.loads(run("predict", "m1", "hi", "--json").stdout) == response


@pytest.mark.parametrize(
    "output",
    [
        {"name": "sentence_embedding", "data_type": "FLOAT32", "shape": [1], "data": [0.5]},
        {"name": "response", "dataAsMap": {"response": {"not": "text"}}},
        {"name": "response", "dataAsMap": None},
    ],
)
def test_a_whole_response_without_text_is_printed_as_json(
    run: Run, sidecar: InMemorySidecar, output: dict[str, Any]
) -> None:
    response = {"inference_results": [{"output": [output]}]}
    sidecar.responses["POST", "/models/m1/_predict"] = response
    assert json.loads(run("predict", "m1", "hi").stdout) == response


def test_an_empty_model_id_is_refused_before_anything_is_sent(run: Run, sidecar: InMemorySidecar) -> None:
    ended = run("predict", "", "--stream", "hi")
    assert (ended.code, sidecar.requests) == (2, [])
    assert "it is empty; see the ids with `models list`" in " ".join(ended.stderr.replace("│", "").split())


def test_a_stream_that_breaks_off_is_printed_so_far_and_is_exit_code_1(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.stream(text("par"), text("t"), NDJSON.error(UpstreamError("overloaded")))
    ended = run("predict", "m1", "--stream", "hi")
    assert (ended.code, ended.stdout) == (1, "part\n")
    assert ended.stderr == "opensearch-ml-stream: overloaded (status 424)\n"


def test_a_connection_that_breaks_is_an_error_too(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.stream(text("part"), fault=httpx.ReadError("reset"))
    ended = run("predict", "m1", "--stream", "hi")
    assert (ended.code, ended.stdout) == (1, "part\n")
    assert "before the response was complete" in ended.stderr


def test_a_stream_without_any_text_prints_no_empty_line(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.stream(NDJSON.ending(Ending("stop"), {}))
    assert run("predict", "m1", "--stream", "hi").stdout == ""
