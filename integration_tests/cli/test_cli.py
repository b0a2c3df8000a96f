"""The command line as its users meet it: a process, its two outputs, its exit code.

What each command sends and prints is in plugin/tests/cli.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from integration_tests.cli.commands import COMMAND, environment, run_process
from integration_tests.cli.terminal import on_a_terminal
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import PATIENCE_SECONDS, eventually
from integration_tests.support.fake_provider import LAST_CHUNK, Act, FakeProvider, Gate, chunk, head

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.wire_format import NDJSON

HEAD = head(content_type="application/x-ndjson", transfer_encoding="chunked")
ENDING = chunk(NDJSON.ending(Ending("stop", "stop", Usage(2, 3), "gpt"), {}))


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


def test_on_a_terminal_a_response_is_text_and_behind_a_pipe_it_is_as_it_came() -> None:
    hostile = "\x1b]52;c;ZXZpbA==\x07a\u009b\u202eb\tc\nd"
    script = [HEAD, *text(hostile[:4]), *text(hostile[4:]), ENDING, LAST_CHUNK]
    with background_provider(script) as server:
        url = {"MLSTREAM_URL": server.url, "TERM": "xterm"}
        with on_a_terminal("predict", "m1", "--stream", "hi", **url) as terminal:
            terminal.read_until("gpt, 2 input tokens, 3 output tokens")
        printed = terminal.output
        assert run_process("predict", "m1", "--stream", "hi", **url).stdout == f"{hostile}\n"
    assert "2;c;ZXZpbA==ab" in printed and "c\r\nd" in printed
    assert [unprintable for unprintable in ("\x1b]", "\x07", "\u009b", "\u202e") if unprintable in printed] == []


def test_the_program_prints_its_version() -> None:
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


def test_a_connection_that_breaks_is_an_error_after_the_text_so_far() -> None:
    gate = Gate()
    with (
        background_provider([HEAD, *text("part"), gate, Act.RESET]) as server,
        streaming(server) as (process, stdout, stderr),
    ):
        assert os.read(stdout, 100) == b"part"
        gate.open()
        assert read_to_end(stdout) == b"\n"
        assert b"before the response was complete" in read_to_end(stderr)
        assert process.wait(PATIENCE_SECONDS) == 1


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
