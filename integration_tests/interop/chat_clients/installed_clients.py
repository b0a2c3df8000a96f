"""Runs programs of the clients that `make clients` installs, each in a process of its own."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from integration_tests.interop.peers.servers import command_of
from integration_tests.support.npm_packages import installed_modules

PROGRAMS = Path(__file__).parent / "programs"
_LIMIT_SECONDS = 170


def outcomes(program: str, models: Sequence[str], variables: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """What each check of a program returned, by `model check`."""
    for checks in PROGRAMS.glob(f"checks{Path(program).suffix}"):
        shutil.copy(checks, folder)
    lines = printed(PROGRAMS / program, variables, folder, *models).splitlines()
    said = [json.loads(line) for line in lines]
    return {f"{model} {check}": got for model, check, got in said}


def printed(program: Path, variables: Mapping[str, str], folder: Path, *arguments: str) -> str:
    """What a program prints that stands in the folder, or is copied there; one that fails fails the test."""
    if program.parent != folder:
        shutil.copy(program, folder)
        program = folder / program.name
    if program.suffix == ".mjs":
        command = ["node", str(program)]
        if not (folder / "node_modules").exists():
            (folder / "node_modules").symlink_to(installed_modules("chat_clients"))
    else:
        python = command_of("chat_clients").with_name("python")
        if not python.exists():
            pytest.fail("chat_clients is not installed: run `make clients`")
        command = [str(python), "-Wignore", str(program)]
    # LiteLLM's price list comes with the package; without this it would fetch it from the network.
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", **variables}
    ended = subprocess.run(
        [*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=_LIMIT_SECONDS
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
