"""The command line: in a process of its own, or, for much less, in this one."""

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest

from opensearch_ml_stream.plugin.cli import main

COMMAND = [sys.executable, "-m", "opensearch_ml_stream.plugin"]


@dataclass(frozen=True, slots=True)
class Ended:
    """The exit code and both outputs of a command."""

    returncode: int
    stdout: str
    stderr: str


def environment(**more: str) -> dict[str, str]:
    """This process's variables without the sidecar's settings, and without the logins that are remembered here."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MLSTREAM_")}
    return {**own, "PYTHONWARNINGS": "error", "XDG_CONFIG_HOME": "/nonexistent", **more}


def run_process(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a process of its own: for what only a process shows."""
    command = [*COMMAND, *arguments]
    return subprocess.run(command, env=environment(**variables), capture_output=True, text=True, timeout=60)


def run_command(*arguments: str, **variables: str) -> Ended:
    """Runs a command in this process, by the function that the program calls."""
    stdout, stderr = _Output(), _Output()
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(stdout),
        redirect_stderr(stderr),
        pytest.raises(SystemExit) as ended,
    ):
        _set_environment(patch, environment(**variables))
        patch.setattr(sys, "argv", ["opensearch-ml-stream", *arguments])
        patch.setattr(sys, "stdin", io.StringIO())
        main()
    return Ended(int(ended.value.code or 0), stdout.text, stderr.text)


def output_of(*arguments: str, **variables: str) -> str:
    """Standard output of a command that must succeed, without the white space around it."""
    ended = run_command(*arguments, **variables)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


class _Output(io.TextIOWrapper):
    """Takes text, and bytes by its `buffer`."""

    def __init__(self) -> None:
        self._written = io.BytesIO()
        super().__init__(self._written, "utf-8", write_through=True)

    @property
    def text(self) -> str:
        return self._written.getvalue().decode()


def _set_environment(patch: pytest.MonkeyPatch, variables: Mapping[str, str]) -> None:
    for name in os.environ.keys() - variables.keys():
        patch.delenv(name)
    for name, value in variables.items():
        patch.setenv(name, value)
