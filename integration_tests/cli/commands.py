"""The command line in a process of its own."""

import os
import subprocess
import sys

COMMAND = [sys.executable, "-m", "opensearch_ml_stream.plugin"]


def environment(**more: str) -> dict[str, str]:
    """This process's variables without the sidecar's settings, and without the logins that are remembered here."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MLSTREAM_")}
    return {**own, "PYTHONWARNINGS": "error", "XDG_CONFIG_HOME": "/nonexistent", **more}


def run_process(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The exit code and both outputs of a command, run to its end."""
    command = [*COMMAND, *arguments]
    return subprocess.run(command, env=environment(**variables), capture_output=True, text=True, timeout=60)


def output_of(*arguments: str, **variables: str) -> str:
    """Standard output of a command that must succeed, without the white space around it."""
    ended = run_process(*arguments, **variables)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()
