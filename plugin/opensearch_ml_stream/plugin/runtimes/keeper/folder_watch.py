"""Changes of the folder of models: which of its models came, went, or have other files than before."""

import os
from collections.abc import Mapping
from pathlib import Path

from opensearch_ml_stream.plugin.runtimes.keeper.model_folders import SETTINGS_FILE, ModelFolder

POLL_SECONDS = 1.0
_PASSED_OVER = (".pyc", ".log", ".tmp", ".lock")  # what a model may write beside its files while it runs

Print = tuple[tuple[str, int, int], ...]
"""Path, time of change and size of each file of a model."""


def prints(models: Mapping[str, ModelFolder]) -> dict[str, Print]:
    """Return what the files of each model look like; to be called in a thread."""
    return {key: _print(model.folder) for key, model in models.items()}


def _print(folder: Path) -> Print:
    """Hidden files and folders, Python environments, and models in a folder below it are not the model's files."""
    found: list[tuple[str, int, int]] = []
    for path, folders, files in os.walk(folder, followlinks=True):
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
                continue  # it has just gone
            found.append((file, status.st_mtime_ns, status.st_size))
    return tuple(found)
