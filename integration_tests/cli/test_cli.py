"""The command line as its users meet it: a process, its two outputs, its exit code.

What each command sends and prints is in plugin/tests/cli.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from integration_tests.cli.commands import COMMAND, environment, run_process
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import PATIENCE_SECONDS, eventually
from integration_tests.support.fake_provider import LAST_CHUNK, Act, FakeProvider, Gate, chunk, head, json_response

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.wire_format import NDJSON

HEAD = head(content_type="application/x-ndjson", transfer_encoding="chunked")
ENDING = chunk(NDJSON.ending(Ending("stop", "stop", Usage(2, 3), "gpt"), {}))
NOT_FOUND = {"error": {"type": "status_exception", "reason": "Failed to find model"}, "status": 404}


def text(*values: str) -> list[bytes]:
    return [chunk(NDJSON.chunks([Chunk(value)])) for value in values]


@contextmanager
def streaming(server: FakeProvider) -> Iterator[tuple[subprocess.Popen[bytes], int, int]]:
    """A running `predict --stream`, and the file descriptors of its stdout and stderr."""
    command = [*COMMAND, "predict", "m1", "--stream", "hi", "--url", server.url]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment()) as process:
        assert process.stdout is not None and process.stderr is not None
        yield process, process.stdout.fileno(), process.stderr.fileno()


def read_to_end(descriptor: int) -> bytes:
    data = b""
    while piece := os.read(descriptor, 65536):
        data += piece
    return data


def test_help_names_every_command_and_the_version_is_the_packages() -> None:
    ended = run_process("--help")
    assert ended.returncode == 0
    names = ("serve", "demo", "blueprints", "models", "predict", "doctor", "settings")
    assert all(name in ended.stdout for name in names)
    assert run_process("--version").stdout.strip()[0].isdigit()


def test_a_streamed_response_appears_as_it_arrives() -> None:
    gate = Gate()
    with (
        background_provider([HEAD, *text("Hel"), gate, *text("lo"), ENDING, LAST_CHUNK]) as server,
        streaming(server) as (process, stdout, _),
    ):
        assert os.read(stdout, 100) == b"Hel"
        gate.open()
        assert read_to_end(stdout) == b"lo\n"
        assert process.wait(PATIENCE_SECONDS) == 0
    assert server.requests[0].json() == {"parameters": {"inputs": "hi"}}


def test_an_error_of_the_server_is_one_line_with_what_to_do_and_exit_code_1() -> None:
    with background_provider(json_response(NOT_FOUND, 404)) as server:
        ended = run_process("predict", "m1", "--stream", "hi", "--url", server.url)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.splitlines() == [
        "opensearch-ml-stream: Failed to find model (status 404); see the ids with `opensearch-ml-stream models list`"
    ]


def test_a_connection_that_breaks_is_an_error_after_the_text_so_far() -> None:
    with background_provider([HEAD, *text("part"), 0.05, Act.RESET]) as server:
        ended = run_process("predict", "m1", "--stream", "hi", "--url", server.url)
    assert (ended.returncode, ended.stdout) == (1, "part\n")
    assert "before the response was complete" in ended.stderr


def test_a_server_that_cannot_be_reached_is_exit_code_3_and_no_key_is_shown() -> None:
    ended = run_process("models", "list", MLSTREAM_URL="http://127.0.0.1:1", MLSTREAM_API_KEY="hunter2")
    assert ended.returncode == 3
    assert "Cannot reach http://127.0.0.1:1" in ended.stderr
    assert "hunter2" not in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_an_invalid_store_is_refused_before_anything_is_served() -> None:
    ended = run_process("serve", "--port", "0", "--store", "ftp://x")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "The store must be" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_ctrl_c_ends_a_stream_with_exit_code_130() -> None:
    with background_provider([HEAD, *text("part"), Act.WAIT]) as server:
        with streaming(server) as (process, stdout, stderr):
            assert os.read(stdout, 100) == b"part"
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_SECONDS) == 130
            assert b"Traceback" not in read_to_end(stderr)
        eventually(server.disconnected.is_set)


def test_a_reader_that_closes_the_pipe_ends_the_command_without_a_trace() -> None:
    script = [HEAD, *text(*["x" * 10_000] * 50), ENDING, LAST_CHUNK]
    with background_provider(script) as server, streaming(server) as (process, _, stderr):
        assert process.stdout is not None
        process.stdout.close()
        assert b"Traceback" not in read_to_end(stderr)
