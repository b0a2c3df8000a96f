"""Runs the command line: in this process, or in one of its own."""

import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from integration_tests.support.fake_provider import Request, Script, json_answer

from opensearch_ml_stream.plugin.cli import main

COMMAND = [sys.executable, "-m", "opensearch_ml_stream.plugin"]
NOT_FOUND = {"error": {"type": "status_exception", "reason": "Failed to find model"}, "status": 404}


def environment(**more: str) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("MLSTREAM_")}
    return {**own, "PYTHONWARNINGS": "error", **more}


@dataclass(frozen=True, slots=True)
class Shown:
    """What a command wrote, and how it ended."""

    returncode: object
    stdout: str
    stderr: str


Run = Callable[..., Shown]


def run_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process: a tenth of the time, for the tests to which that makes no difference."""

    def here(*arguments: str, stdin: str = "", **variables: str) -> Shown:
        for name in [name for name in os.environ if name.startswith("MLSTREAM_")]:
            monkeypatch.delenv(name)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["opensearch-ml-stream", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as ended:
            main()
        written = capsys.readouterr()
        return Shown(ended.value.code, written.out, written.err)

    return here


def run_process(*arguments: str, **variables: str) -> Shown:
    command = [*COMMAND, *arguments]
    ended = subprocess.run(command, env=environment(**variables), capture_output=True, text=True, timeout=30)
    return Shown(ended.returncode, ended.stdout, ended.stderr)


def routes(known: Mapping[tuple[str, str], Any]) -> Any:
    """Responses by method and path below the base path; 404 for the rest."""

    def answer(request: Request) -> Script:
        found = known.get((request.method, request.path.removeprefix("/_plugins/_ml")))
        return json_answer(NOT_FOUND, 404) if found is None else json_answer(found)

    return answer
