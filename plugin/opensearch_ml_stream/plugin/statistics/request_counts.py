"""How often each action was requested and failed, of each model and of the server, and how long predictions took.

A model has a record in a table that the workers share. They change it under the table's lock, and read it without: what
is counted is written before its count. What is counted of the server is in a record for each worker, which changes it
alone; its successor goes on in it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count, takewhile
from math import isnan, nan
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from opensearch_ml_stream.plugin.shared.table import CELL, SharedTable, table_key

ACTIONS = ("predict", "batch_predict", "register", "deploy", "undeploy")  # as ML Commons names them in its stats
WINDOW = (
    100  # predictions whose durations are kept: ML Commons' default of `plugins.ml_commons.monitoring_request_count`
)
MAX_ID_BYTES = 512  # of a document in OpenSearch

MODEL_ID = Struct(f"Q{MAX_ID_BYTES}s")  # behind its length
_THROTTLED, _MEASURED = 2 * len(ACTIONS), 2 * len(ACTIONS) + 1  # cells behind the actions' counts
_COUNTS = Struct(f"{_MEASURED + 1}Q")
_DURATIONS = Struct("dd")  # of a request, and of its inference or NaN
_FIRST_DURATIONS = _COUNTS.size + MODEL_ID.size
_RECORD = Struct(f"{_FIRST_DURATIONS + WINDOW * _DURATIONS.size}s")  # of a worker: without an id
_FIRST_LEVEL = 64  # slots of 2 KiB
_MAX_LEVELS = 14  # a million slots


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
class ActionCount:
    """How often an action was requested, and how often it failed."""

    requests: int
    failures: int


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


class RequestCounts:
    """The counts in a directory, as the worker of that number adds to them; `is_shared` is whether there are others.

    OSError on a full disk, or if another worker does not let go of the table.
    """

    def __init__(self, directory: Path, worker: int, *, is_shared: bool = True) -> None:
        self._table = SharedTable(directory / "counts", _RECORD, _MAX_LEVELS, _FIRST_LEVEL, is_shared=is_shared)
        self._worker = worker
        self._own = 0  # the place of the worker's record

    def add(self, model_id: str | None, finished: FinishedAction) -> None:
        """Count a request, also of the model if it was one's."""
        own = self._own or self._join()
        self._count(own, finished)
        if model_id is None:
            return
        with self._table as table:
            place = table.find(table_key(model_id)) or self._new_place(model_id)
            cells, first = table.cells, place // CELL
            if finished.request_duration is not None:
                measured = cells[first + _MEASURED]
                inference = nan if finished.inference_duration is None else finished.inference_duration
                offset = place + _FIRST_DURATIONS + measured % WINDOW * _DURATIONS.size
                _DURATIONS.pack_into(table.memory, offset, finished.request_duration, inference)
                cells[first + _MEASURED] = measured + 1
            if finished.throttled:
                cells[first + _THROTTLED] += 1
            self._count(place, finished)

    def forget_predictions(self, model_id: str) -> None:
        """Forget how long predictions took and which were throttled, as ML Commons does when a model is undeployed."""
        with self._table as table:
            first = (table.find(table_key(model_id)) or self._new_place(model_id)) // CELL
            table.cells[first + _THROTTLED] = table.cells[first + _MEASURED] = 0

    def forget(self, model_id: str) -> None:
        """Forget the model."""
        with self._table as table:
            table.refresh()
            if place := table.find(table_key(model_id)):
                table.remove(place)

    def of_server(self) -> dict[str, ActionCount]:
        """Return the counts of all workers together, without actions that were never requested."""
        self._table.refresh()
        places = takewhile(bool, (self._table.find(_key_of_worker(number)) for number in count()))
        return _action_counts(map(sum, zip(*(self._counts(place) for place in places), strict=True)))

    def of_model(self, model_id: str) -> ModelFigures | None:
        """Return what is known of the model, None if nothing is."""
        self._table.refresh()
        place = self._table.find(table_key(model_id))
        return self._figures(place) if place else None

    def of_models(self) -> dict[str, ModelFigures]:
        """Return all models of which something is known, by id."""
        self._table.refresh()
        figures = map(self._figures, self._table.records())
        return {model.model_id: model for model in figures if model is not None}

    def close(self) -> None:
        """Let go of the file, as the end of the process does."""
        self._table.close()

    def _count(self, place: int, finished: FinishedAction) -> None:
        position = place // CELL + 2 * ACTIONS.index(finished.action)
        self._table.cells[position] += 1
        if finished.failed:
            self._table.cells[position + 1] += 1

    def _join(self) -> int:
        """Return the place of the worker's record; there is one of every number before it, too."""
        with self._table as table:
            self._own = table.places([_key_of_worker(number) for number in range(self._worker + 1)])[-1]
        return self._own

    def _new_place(self, model_id: str) -> int:
        """Return the place of the model's record under the lock; it may be another worker's by now."""
        [place] = self._table.places([table_key(model_id)])
        MODEL_ID.pack_into(self._table.memory, place + _COUNTS.size, *id_bytes(model_id))
        return place

    def _counts(self, place: int) -> tuple[int, ...]:
        return _COUNTS.unpack_from(self._table.memory, place)[:_THROTTLED]

    def _figures(self, place: int) -> ModelFigures | None:
        [record] = self._table.read(place)
        counts = _COUNTS.unpack_from(record)
        model_id = id_of(*MODEL_ID.unpack_from(record, _COUNTS.size))
        if not model_id:
            return None
        end = _FIRST_DURATIONS + min(counts[_MEASURED], WINDOW) * _DURATIONS.size
        durations = list(_DURATIONS.iter_unpack(record[_FIRST_DURATIONS:end]))
        return ModelFigures(
            model_id,
            _action_counts(counts[:_THROTTLED]),
            counts[_THROTTLED],
            tuple(request for request, _ in durations),
            tuple(inference for _, inference in durations if not isnan(inference)),
        )


def id_bytes(model_id: str) -> tuple[int, bytes]:
    """Return a model's id as MODEL_ID has it."""
    name = model_id.encode("utf-8", "replace")[:MAX_ID_BYTES]
    return len(name), name


def id_of(length: int, name: bytes) -> str:
    """Return the id that MODEL_ID has."""
    return name[:length].decode("utf-8", "replace")


def _key_of_worker(number: int) -> bytes:
    return (number + 1).to_bytes(16, "little")  # no hash is that small


def _action_counts(numbers: Iterable[int]) -> dict[str, ActionCount]:
    """Return the counts of requests and failures, in turn for each of ACTIONS, by action."""
    pairs = iter(numbers)
    counts = {action: ActionCount(next(pairs, 0), next(pairs, 0)) for action in ACTIONS}
    return {action: count for action, count in counts.items() if count.requests}
