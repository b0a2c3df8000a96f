"""Packages of npm, which `scripts/npm_packages.sh` installs where they are not there yet."""

import subprocess
from functools import cache
from pathlib import Path

import pytest

_INSTALL = Path(__file__).parents[2] / "scripts" / "npm_packages.sh"


@cache
def installed_modules(name: str) -> str:
    """The folder of the modules that `scripts/{name}/package-lock.json` has."""
    installed = subprocess.run([_INSTALL, name], capture_output=True, text=True, check=False)
    if installed.returncode != 0:
        pytest.fail(f"{name} could not be installed:\n{installed.stderr}")
    return installed.stdout.strip()
