"""The file of one model: how often its actions were requested and failed, and how long its last predictions took.

All workers of a server write the same file, under a lock that is held for microseconds, and read it without: what is
counted is written before its count. The files of the models that a worker counted for last stay open and mapped. Who
removes a file says so in it, to those who have it open.
"""

import errno
import fcntl
import mmap
import os
import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import isnan, nan
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from opensearch_ml_stream.plugin.locked_file import lock
from opensearch_ml_stream.plugin.statistics.worker_file import ACTIONS, MAX_ID_BYTES, ActionCount, action_counts

WINDOW = (
    100  # predictions whose durations are kept: ML Commons' default of `plugins.ml_commons.monitoring_request_count`
)

_PREFIX = "model-"
_THROTTLED, _MEASURED, _FORGOTTEN = (2 * len(ACTIONS) + offset for offset in range(3))  # behind the actions' counts
_COUNTS = Struct(f"{_FORGOTTEN + 1}Q")
_ID = Struct(f"H{MAX_ID_BYTES}s")
_DURATIONS = Struct("dd")  # of a request, and of its inference or NaN
_FIRST_DURATIONS = _COUNTS.size + _ID.size
_SIZE = _FIRST_DURATIONS + WINDOW * _DURATIONS.size
_MAX_OPEN = 32  # files of a worker
_YES = (1).to_bytes(8, sys.byteorder)  # as one of the counts


class FinishedAction(NamedTuple):
    """What is counted of one request. Durations in milliseconds; None if it is not measured, or not an inference.

    `throttled`: a limit of the sidecar's own refused it.
    """

    action: str
    failed: bool = False
    throttled: bool = False
    request_duration: float | None = None
    inference_duration: float | None = None


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """What is known of a model.

    Durations are those of the last WINDOW predictions, in milliseconds and in no order; inferences are those of them
    that succeeded, without the reading of the model.
    """

    model_id: str
    actions: Mapping[str, ActionCount]
    throttled: int
    request_durations: tuple[float, ...]
    inference_durations: tuple[float, ...]


class _OpenFile:
    """A model's file, mapped; its counts are written in place, under its lock if other workers write it too."""

    __slots__ = ("_file", "_is_shared", "_memory", "counts")

    def __init__(self, path: str, model_id: str, *, is_shared: bool) -> None:
        self._is_shared = is_shared
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._fill(model_id)
            self._memory = mmap.mmap(self._file, _SIZE)
        except OSError:
            os.close(self._file)
            raise
        self.counts = memoryview(self._memory)[: _COUNTS.size].cast("Q")
        if not os.fstat(self._file).st_nlink:  # removed since it was opened: filling it may have undone the mark
            self.counts[_FORGOTTEN] = 1

    def __enter__(self) -> None:
        if self._is_shared:
            lock(self._file)

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if self._is_shared:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def add(self, finished: FinishedAction) -> None:
        """Count a request, under the lock."""
        counts = self.counts
        if finished.request_duration is not None:
            measured = counts[_MEASURED]
            inference = nan if finished.inference_duration is None else finished.inference_duration
            place = _FIRST_DURATIONS + measured % WINDOW * _DURATIONS.size
            _DURATIONS.pack_into(self._memory, place, finished.request_duration, inference)
            counts[_MEASURED] = measured + 1
        if finished.throttled:
            counts[_THROTTLED] += 1
        position = 2 * ACTIONS.index(finished.action)
        counts[position] += 1
        if finished.failed:
            counts[position + 1] += 1

    def close(self) -> None:
        """Let go of the file."""
        self.counts.release()
        self._memory.close()
        os.close(self._file)

    def _fill(self, model_id: str) -> None:
        """Write every byte of a new file: a write to a page that finds no room on the disk would kill the process."""
        lock(self._file)
        try:
            if os.fstat(self._file).st_size < _SIZE:
                name = model_id.encode("utf-8", "replace")[:MAX_ID_BYTES]
                empty = bytes(_COUNTS.size) + _ID.pack(len(name), name)
                if os.pwrite(self._file, empty.ljust(_SIZE, b"\0"), 0) != _SIZE:
                    os.ftruncate(self._file, 0)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)


class ModelFiles:
    """The files of the models in a directory, as one worker writes them.

    OSError on a full disk, or if another worker does not let go of a file. `is_shared` is whether there are others.
    """

    def __init__(self, directory: Path, *, is_shared: bool = True) -> None:
        self._directory = directory
        self._is_shared = is_shared
        self._open_files: OrderedDict[str, _OpenFile] = OrderedDict()  # by model, the one used last at the end

    def add(self, model_id: str, finished: FinishedAction) -> None:
        """Count a request of the model."""
        file = self._file(model_id)
        if not self._is_shared:
            file.add(finished)
            return
        with file:
            file.add(finished)

    def forget_predictions(self, model_id: str) -> None:
        """Forget how long predictions took and which were throttled, as ML Commons does when a model is undeployed."""
        file = self._file(model_id)
        with file:
            file.counts[_THROTTLED] = file.counts[_MEASURED] = 0

    def close(self) -> None:
        """Let go of the files, as the end of the process does."""
        while self._open_files:
            self._open_files.popitem()[1].close()

    def _file(self, model_id: str) -> _OpenFile:
        """Return the model's file, new or not."""
        while (file := self._open_files.get(model_id)) is None or file.counts[_FORGOTTEN]:
            self._open(model_id)
        self._open_files.move_to_end(model_id)
        return file

    def _open(self, model_id: str) -> None:
        if (forgotten := self._open_files.pop(model_id, None)) is not None:
            forgotten.close()
        path = _path(self._directory, model_id)
        self._open_files[model_id] = _OpenFile(path, model_id, is_shared=self._is_shared)
        if len(self._open_files) > _MAX_OPEN:
            self._open_files.popitem(last=False)[1].close()


def forget(directory: Path, model_id: str) -> None:
    """Forget the model, also where its file is open."""
    path = _path(directory, model_id)
    try:
        file = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return
    try:
        Path(path).unlink(missing_ok=True)
        os.pwrite(file, _YES, _FORGOTTEN * len(_YES))
    finally:
        os.close(file)


def read_model(directory: Path, model_id: str) -> ModelFigures | None:
    """Return what is known of the model, None if nothing is."""
    try:
        return _read(Path(_path(directory, model_id)))
    except FileNotFoundError:
        return None


def read_models(directory: Path) -> dict[str, ModelFigures]:
    """Return all models of which something is known, by id."""
    models: dict[str, ModelFigures] = {}
    for path in directory.glob(f"{_PREFIX}*"):
        try:
            figures = _read(path)
        except FileNotFoundError:  # forgotten meanwhile
            continue
        if figures is not None:
            models[figures.model_id] = figures
    return models


def _path(directory: Path, model_id: str) -> str:
    return f"{directory}/{_PREFIX}{sha256(model_id.encode('utf-8', 'replace')).hexdigest()[:32]}"


def _read(path: Path) -> ModelFigures | None:
    data = path.read_bytes()
    if len(data) < _SIZE:  # a worker ended while it made the file
        return None
    counts = _COUNTS.unpack_from(data)
    length, name = _ID.unpack_from(data, _COUNTS.size)
    end = _FIRST_DURATIONS + min(counts[_MEASURED], WINDOW) * _DURATIONS.size
    durations = list(_DURATIONS.iter_unpack(data[_FIRST_DURATIONS:end]))
    return ModelFigures(
        name[:length].decode("utf-8", "replace"),
        action_counts(counts[:_THROTTLED]),
        counts[_THROTTLED],
        tuple(request for request, _ in durations),
        tuple(inference for _, inference in durations if not isnan(inference)),
    )
