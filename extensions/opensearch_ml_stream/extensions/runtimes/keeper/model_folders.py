"""Folders of models: each has a `model-settings.json`, as MLServer and Seldon write it."""

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_urls import runtime_model_id

SETTINGS_FILE = "model-settings.json"
_ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta")  # of a Python environment, which is not searched for models
_VARIABLE_PREFIX = "MLSERVER_MODEL_"
_FIELDS = (
    "name", "implementation", "platform", "versions", "inputs", "outputs", "parallel_workers", "warm_workers",
    "max_batch_size", "max_batch_time", "cache_enabled", "parameters",
)  # fmt: skip
_PARAMETERS = (
    "uri", "version", "environment_path", "environment_tarball", "inference_pool_gid",
    "autogenerate_inference_pool_gid", "format", "content_type", "extra",
)  # fmt: skip
_TEXTS = frozenset({
    "name", "implementation", "platform", "uri", "version", "environment_path", "environment_tarball", "format",
    "content_type", "inference_pool_gid",
})  # fmt: skip
_NUMBERED = re.compile(r"v?([0-9]{1,9})")
MAX_PROCESSES = 256
_SHORTAGES = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EIO, errno.ESTALE, errno.ETIMEDOUT}
POLL_SECONDS = 1.0  # between two looks at the folder
_PASSED_OVER = (".pyc", ".log", ".tmp", ".lock")  # files that a model may write while it runs


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """One model of a folder. `settings` are those of its file, with a name, and with what the environment adds.

    `problem` says why it cannot be loaded. `files` are path, modification time and size of each of its files, if they
    were read: a change in them means that the model is loaded anew.
    """

    folder: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    files: tuple[tuple[str, int, int], ...] = ()

    @property
    def name(self) -> str:
        """The model's name; the folder's if its file has none or cannot be read."""
        return str(self.settings.get("name") or self.folder.name)

    @property
    def version(self) -> str | None:
        """The model's version, if it has one."""
        version = self.parameters.get("version")
        return None if version is None else str(version)

    @property
    def version_number(self) -> int:
        """The number in the version; 1 if it is not a number."""
        match = _NUMBERED.fullmatch(self.version or "")
        return int(match[1]) if match else 1

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The settings' `parameters`."""
        return self.settings.get("parameters") or {}

    @property
    def process_count(self) -> int:
        """How many processes run the model: `parameters.extra.processes`, else `parallel_workers`, else 1."""
        extra = self.parameters.get("extra") or {}
        for value in (extra.get("processes"), self.settings.get("parallel_workers")):
            if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
                return min(value, MAX_PROCESSES)
        return 1


def model_id(model: ModelFolder) -> str:
    """Return the id of the model's document."""
    return runtime_model_id(model.name, model.version)


def check_models_folder(directory: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Raise InvalidRequest if the folder does not exist or has no model."""
    if not directory.is_dir():
        raise InvalidRequest(f"The folder of models {directory} does not exist; see --models")
    if not read_model_folders(directory, environment):
        raise InvalidRequest(
            f"The folder of models {directory} has no model: a folder in it with a {SETTINGS_FILE}; see --models"
        )


def read_model_folders(directory: Path, environment: Mapping[str, str] = os.environ) -> dict[str, ModelFolder]:
    """Return the models in a folder and below it, in order, by the names of their processes.

    That is the model's name; for further versions the name, a slash and the version. Without any `model-settings.json`
    there is one model if MLSERVER_MODEL_IMPLEMENTATION is set.
    """
    models: dict[str, ModelFolder] = {}
    for folder in model_folders(directory):
        model = _read(folder, environment)
        others = [other for other in models.values() if other.name == model.name]
        if same := [other for other in others if other.version == model.version]:
            problem = model.problem or (
                f"{folder / SETTINGS_FILE}: the model {_shown(model)} is that of {same[0].folder} already; "
                "give it another name, or another parameters.version"
            )
            model = ModelFolder(folder, model.settings, problem)
        key = model.name
        if key in models:
            key = f"{model.name}/{model.version or folder.name}"
        models[key if key not in models else f"{key}/{folder}"] = model
    if not models and environment.get(_VARIABLE_PREFIX + "IMPLEMENTATION"):
        model = _completed(directory.resolve(), {}, environment)
        models[model.name] = model
    return models


def model_folders(directory: Path) -> Iterator[Path]:
    """Yield the folders with a `model-settings.json` in and below the given one, sorted, without hidden ones."""
    for path, folders, files in walk(directory.resolve()):
        if any(mark in folders or mark in files for mark in _ENVIRONMENT_MARKS):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        if SETTINGS_FILE in files:
            yield Path(path)


def walk(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk through a folder as `os.walk` does, following links. OSError if it cannot be read for lack of resources."""
    return os.walk(folder, onerror=_raise_shortage, followlinks=True)


def _raise_shortage(error: OSError) -> None:
    """Raise an error that is not about the files, such as a lack of file descriptors."""
    if error.errno in _SHORTAGES:
        raise error


def _read(folder: Path, environment: Mapping[str, str]) -> ModelFolder:
    file = folder / SETTINGS_FILE
    try:
        settings = json.loads(file.read_text("utf-8"))
    except OSError as error:
        _raise_shortage(error)
        return ModelFolder(folder, problem=f"{file} cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        return ModelFolder(folder, problem=f"{file} is not UTF-8; save it as UTF-8")
    except RecursionError:
        return ModelFolder(folder, problem=f"{file} is nested too deeply")
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        return ModelFolder(folder, problem=f"{file} is not JSON at {place}: {error.msg}; correct it there")
    if not isinstance(settings, dict):
        return ModelFolder(folder, problem=f"{file} must hold a JSON object")
    return _completed(folder, settings, environment)


def _completed(folder: Path, settings: Mapping[str, Any], environment: Mapping[str, str]) -> ModelFolder:
    """Return the model, checked, with absent fields from MLServer's environment variables."""
    settings = {**_of_environment(_FIELDS, environment), **settings}
    parameters = settings.get("parameters") or {}
    file = folder / SETTINGS_FILE
    if not isinstance(parameters, dict):
        return ModelFolder(folder, problem=f"{file}: parameters must be an object")
    parameters = {**_of_environment(_PARAMETERS, environment), **parameters}
    for holder, place in ((settings, ""), (parameters, "parameters.")):
        for name in _TEXTS & holder.keys():
            if holder[name] is not None and not isinstance(holder[name], str):
                return ModelFolder(folder, problem=f"{file}: {place}{name} must be a string")
    if not isinstance(parameters.get("extra") or {}, dict):
        return ModelFolder(folder, problem=f"{file}: parameters.extra must be an object")
    settings = {**settings, "name": settings.get("name") or folder.name, "parameters": parameters}
    problem = "" if settings.get("implementation") else f"{file} has no implementation: name the model's class there"
    return ModelFolder(folder, settings, problem)


def _of_environment(names: tuple[str, ...], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of MLSERVER_MODEL_..., which are JSON except for texts."""
    found: dict[str, Any] = {}
    for name in names:
        text = environment.get(_VARIABLE_PREFIX + name.upper())
        if text is not None:
            found[name] = text if name in _TEXTS else json_value(text)
    return found


def json_value(text: str) -> Any:
    """Return the value of a JSON text; the text itself if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _shown(model: ModelFolder) -> str:
    return model.name if model.version is None else f"{model.name}, version {model.version},"


def look(directory: Path) -> dict[str, ModelFolder]:
    """Return the models of a folder, with their `files`; to be called in a thread.

    The settings are read after the files, so that a change in between is noticed the next time. OSError if the folder
    cannot be read for lack of resources.
    """
    files = {model.folder: _files_of(model.folder) for model in read_model_folders(directory).values()}
    models = read_model_folders(directory)
    return {key: replace(model, files=files.get(model.folder, ())) for key, model in models.items()}


def _files_of(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Return a model's files, without hidden ones, Python environments and other models below it."""
    found: list[tuple[str, int, int]] = []
    for path, folders, files in walk(folder):
        if path != str(folder) and (SETTINGS_FILE in files or "pyvenv.cfg" in files or "conda-meta" in folders):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        for name in sorted(files):
            if name.startswith(".") or name.endswith(_PASSED_OVER):
                continue
            file = os.path.join(path, name)
            try:
                status = os.stat(file)
            except OSError:
                continue  # it was just removed
            found.append((file, status.st_mtime_ns, status.st_size))
    return tuple(found)
