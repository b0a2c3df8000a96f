"""Environments of models' processes: interpreter and environment variables, without secrets of this server."""

import hashlib
import os
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import ModelFolder
from opensearch_ml_stream.plugin.settings import Settings

_OWN_PREFIXES = ("MLSTREAM_", "OPENSEARCH_ML_STREAM_")
_OWN = ("PROMETHEUS_MULTIPROC_DIR", "PYTHONHOME", "__PYVENV_LAUNCHER__")
_UNPACKED = ".unpacked"  # written once an environment is completely unpacked


class NoEnvironment(Exception):
    """A model's Python environment does not exist; the message says where it should be."""


def interpreter(model: ModelFolder, environments: Path) -> str:
    """Return the path of the model's interpreter; a tarball is unpacked below `environments` if necessary.

    NoEnvironment if there is none. To be called in a thread, since it reads files.
    """
    if path := model.parameters.get("environment_path"):
        return _python(_located(model.folder, path), "environment_path")
    if path := model.parameters.get("environment_tarball"):
        return _python(_unpacked(_located(model.folder, path), environments), "environment_tarball")
    return sys.executable


def environment_variables(
    python: str, secret_variables: frozenset[str], environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the variables of a model's process: this server's, without its own settings and secrets.

    If the interpreter is of another environment, programs of that environment are found first.
    """
    variables = {
        name: value
        for name, value in environment.items()
        if not name.startswith(_OWN_PREFIXES) and name not in _OWN and name not in secret_variables
    }
    if python != sys.executable:
        folder = os.path.dirname(python)
        variables["PATH"] = os.pathsep.join(filter(None, (folder, variables.get("PATH", ""))))
        variables.pop("PYTHONPATH", None)  # names packages of this server's interpreter
        variables.pop("VIRTUAL_ENV", None)
    return variables


def secret_variables(settings: Settings) -> frozenset[str]:
    """Return the names of the variables that the settings take secrets from."""
    secrets = [settings.value(setting) for setting in settings.definitions().values() if setting.kind == "secret"]
    return frozenset(value.removeprefix("env:") for value in secrets if value.startswith("env:"))


def environments_folder(server_settings: Mapping[str, Any], runtimes: Path) -> Path:
    """Return where tarballs are unpacked: MLServer's `environments_dir`, else a folder that the server removes."""
    named = server_settings.get("environments_dir")
    return Path(named) if isinstance(named, str) and named else runtimes / "environments"


def _located(folder: Path, path: str) -> Path:
    """Return an absolute path: relative to the model's folder or, as in MLServer, to the working directory."""
    expanded = Path(os.path.expanduser(os.path.expandvars(path)))
    in_folder = folder / expanded
    return in_folder if in_folder.exists() else expanded.absolute()


def _python(environment: Path, field: str) -> str:
    python = environment / "bin" / "python"
    if not os.access(python, os.X_OK):
        raise NoEnvironment(f"parameters.{field}: there is no interpreter {python}")
    return str(python)


def _unpacked(tarball: Path, environments: Path) -> Path:
    try:
        with tarball.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        folder = environments / digest
        if not (folder / _UNPACKED).exists():
            folder.mkdir(parents=True, exist_ok=True)
            with tarfile.open(tarball) as archive:
                archive.extractall(folder, filter="tar")
            (folder / _UNPACKED).touch()
    except (OSError, tarfile.TarError) as error:
        raise NoEnvironment(f"parameters.environment_tarball: {tarball} cannot be unpacked: {error}") from None
    return folder
