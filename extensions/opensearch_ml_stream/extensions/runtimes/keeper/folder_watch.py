"""The folder of models with what their files look like, by which it is seen that one came, went, or has changed."""

import os
from dataclasses import replace
from pathlib import Path

from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import (
    SETTINGS_FILE,
    ModelFolder,
    read_model_folders,
    walk,
)

POLL_SECONDS = 1.0
_PASSED_OVER = (".pyc", ".log", ".tmp", ".lock")  # what a model may write beside its files while it runs


def look(directory: Path) -> dict[str, ModelFolder]:
    """Return the models of a folder, with their `files`; to be called in a thread.

    The settings are read after the files were looked at, so that a change meanwhile is seen the next time. OSError if
    the folder cannot be looked at now.
    """
    files = {model.folder: _files(model.folder) for model in read_model_folders(directory).values()}
    models = read_model_folders(directory)
    return {key: replace(model, files=files.get(model.folder, ())) for key, model in models.items()}


def _files(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Hidden files and folders, Python environments, and models in a folder below it are not the model's files."""
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
                continue  # it has just gone
            found.append((file, status.st_mtime_ns, status.st_size))
    return tuple(found)
