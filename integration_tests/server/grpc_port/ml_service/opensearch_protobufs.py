"""OpenSearch's own classes for MLService, kept apart: opensearch-py needs an older opensearch-protobufs without it."""

import os
import subprocess
import sys
from pathlib import Path

VERSION = "1.7.0"
_FOLDER = Path(__file__).parents[4] / ".peers" / f"opensearch-protobufs-{VERSION}"


def environment() -> dict[str, str]:
    """The environment of a Python program that imports them; they are installed the first time."""
    if not _FOLDER.exists():
        arguments = ["--no-deps", "--quiet", "--disable-pip-version-check", f"--target={_FOLDER}.new"]
        package = f"opensearch-protobufs=={VERSION}"
        subprocess.run([sys.executable, "-m", "pip", "install", *arguments, package], check=True)
        Path(f"{_FOLDER}.new").rename(_FOLDER)
    return {**os.environ, "PYTHONPATH": str(_FOLDER)}


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program that imports them."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=30, check=False)
