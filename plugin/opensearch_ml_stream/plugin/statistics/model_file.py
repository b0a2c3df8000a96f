"""The file of one model: how often its actions were requested and failed, and how long its last predictions took.

All workers of a server write the same file, under a lock that is held for microseconds, and read it without: the
counts are written last, so what they count is there.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from math import isnan, nan
from pathlib import Path
from struct import Struct

from opensearch_ml_stream.plugin.locked_file import locked
from opensearch_ml_stream.plugin.statistics.worker_file import ACTIONS, MAX_ID_BYTES, ActionCount, action_counts

WINDOW = (
    100  # predictions whose durations are kept: ML Commons' default of `plugins.ml_commons.monitoring_request_count`
)

_PREFIX = "model-"
_THROTTLED, _MEASURED = (2 * len(ACTIONS) + offset for offset in range(2))  # behind the actions' counts
_COUNTS = Struct(f"{_MEASURED + 1}Q")
_ID = Struct(f"H{MAX_ID_BYTES}s")
_DURATIONS = Struct("dd")  # of a request, and of its inference or NaN
_FIRST_DURATIONS = _COUNTS.size + _ID.size


@dataclass(frozen=True, slots=True)
class FinishedAction:
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


def add(directory: Path, model_id: str, finished: FinishedAction) -> None:
    """Count a request of the model; OSError on a full disk, or if another worker does not let go of the file."""
    with _opened(directory, model_id) as (file, counts):
        position = 2 * ACTIONS.index(finished.action)
        counts[position] += 1
        counts[position + 1] += finished.failed
        counts[_THROTTLED] += finished.throttled
        if finished.request_duration is not None:
            inference = nan if finished.inference_duration is None else finished.inference_duration
            place = _FIRST_DURATIONS + counts[_MEASURED] % WINDOW * _DURATIONS.size
            os.pwrite(file, _DURATIONS.pack(finished.request_duration, inference), place)
            counts[_MEASURED] += 1


def forget_predictions(directory: Path, model_id: str) -> None:
    """Forget how long predictions took and which were throttled, as ML Commons does when a model is undeployed."""
    with _opened(directory, model_id) as (_, counts):
        counts[_THROTTLED] = counts[_MEASURED] = 0


def forget(directory: Path, model_id: str) -> None:
    """Forget the model."""
    Path(_path(directory, model_id)).unlink(missing_ok=True)


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


@contextmanager
def _opened(directory: Path, model_id: str) -> Iterator[tuple[int, list[int]]]:
    """Open the model's file, new or not, and lock it; the counts are written when the block ends."""
    with locked(_path(directory, model_id)) as file:
        stored = os.pread(file, _COUNTS.size, 0)
        if len(stored) == _COUNTS.size:
            counts = list(_COUNTS.unpack(stored))
        else:
            counts = [0] * (_MEASURED + 1)
            name = model_id.encode("utf-8", "replace")[:MAX_ID_BYTES]
            os.pwrite(file, _ID.pack(len(name), name), _COUNTS.size)
        yield file, counts
        os.pwrite(file, _COUNTS.pack(*counts), 0)


def _read(path: Path) -> ModelFigures | None:
    data = path.read_bytes()
    if len(data) < _FIRST_DURATIONS:  # a worker ended while it made the file
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
