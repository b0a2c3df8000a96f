"""Commands run in this process, through their console script, against a sidecar in memory."""

import io
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from opensearch_ml_stream.plugin.cli import main
from tests.cli.in_memory_sidecar import InMemorySidecar


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it printed."""

    code: object
    stdout: str
    stderr: str


Run = Callable[..., Ended]


@pytest.fixture
def sidecar(monkeypatch: pytest.MonkeyPatch) -> InMemorySidecar:
    """A sidecar that receives every request of httpx, to whatever address."""
    in_memory = InMemorySidecar()
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda _transport, request: in_memory.handle(request))
    return in_memory


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], sidecar: InMemorySidecar, tmp_path: Path
) -> Run:
    """A function that runs a command with these arguments; keywords are environment variables."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def run_command(*arguments: str, stdin: str = "", **variables: str) -> Ended:
        for name in [name for name in os.environ if name.startswith("MLSTREAM_")]:
            monkeypatch.delenv(name)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["opensearch-ml-stream", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return Ended(ended.value.code, printed.out, printed.err)

    return run_command
