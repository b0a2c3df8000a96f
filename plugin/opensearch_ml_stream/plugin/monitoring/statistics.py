"""Statistics of a server's requests, counted once per request: the source of `/stats` and `/profile`.

They are tables in a folder that the server's workers share and that is removed with it, so that any worker can report
for all. The tables are memory-mapped: counting is a write to memory, which survives a worker that is killed.
"""

import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import count, takewhile
from math import isnan, nan
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from opensearch_ml_stream.connectors.errors import NotFound, Unavailable
from opensearch_ml_stream.plugin.shared.table import CELL, SharedTable, table_key
from opensearch_ml_stream.plugin.shared.worker_files import WorkerNumber, make_folder

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
_COUNTS_RECORD = Struct(f"{_FIRST_DURATIONS + WINDOW * _DURATIONS.size}s")  # of a worker: without an id
_FIRST_LEVEL = 64  # slots, of 2 KiB for counts and half a KiB for what runs
_MAX_LEVELS = 14  # a million slots
# The prediction's start (CLOCK_MONOTONIC), its number or 0 if there is none, the number of its worker, its model's id.
_RUNNING_RECORD = Struct(f"dQQQ{MAX_ID_BYTES}s")
_PREDICTION = Struct("dQ")
_NUMBER, _WORKER = 1, 2  # cells
_ID_OFFSET = 3 * CELL
_RECORDS_ADDED = 16  # at a time
log = logging.getLogger(__name__)
DELETE = "delete"  # of a model: nothing counts it, and nothing of the model is kept
UNDEPLOY = "undeploy"


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
    """How often each action was requested and failed, and how long predictions took, in a directory of all workers.

    A model has a record in a table. Workers change it under the table's lock and read it without, so data is written
    before its count. The counts of the server are in a record for each worker, which changes it alone; a worker's
    successor continues its record. `worker` is the number of this one, `is_shared` is whether there are others. OSError
    on a full disk, or if another worker does not release the table.
    """

    def __init__(self, directory: Path, worker: int, *, is_shared: bool = True) -> None:
        self._table = SharedTable(directory / "counts", _COUNTS_RECORD, _MAX_LEVELS, _FIRST_LEVEL, is_shared=is_shared)
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
        """Reset durations and throttled requests, as ML Commons does when a model is undeployed."""
        with self._table as table:
            first = (table.find(table_key(model_id)) or self._new_place(model_id)) // CELL
            table.cells[first + _THROTTLED] = table.cells[first + _MEASURED] = 0

    def forget(self, model_id: str) -> None:
        """Remove the model's record."""
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
        """Return the place of the worker's record, after adding those of all lower numbers."""
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


@dataclass(frozen=True, slots=True)
class RunningPrediction:
    """A prediction that runs now; `started` by CLOCK_MONOTONIC, which is the same in all processes."""

    task_id: str
    model_id: str
    started: float


class RunningPredictions:
    """The predictions that run on a server, in a directory of all workers. OSError on a full disk.

    A worker adds records under the table's lock, and reuses them without it, since only it writes them. Records of a
    worker that has ended are ignored, until its successor takes them over.
    """

    def __init__(self, directory: Path, worker: WorkerNumber, *, is_shared: bool = True) -> None:
        self._worker = worker
        self._table = SharedTable(
            directory / "running", _RUNNING_RECORD, _MAX_LEVELS, _FIRST_LEVEL, is_shared=is_shared
        )
        self._ids: dict[int, str] = {}  # that stand in the worker's records, by place, whether they are free or not
        self._number = secrets.randbits(63)  # of the last prediction: no two workers give the same task id
        with self._table as table:
            table.refresh()
            own = [place for place in table.records() if table.cells[place // CELL + _WORKER] == worker.number]
        for place in own:
            table.cells[place // CELL + _NUMBER] = 0
        self._free = own

    def start(self, model_id: str, started: float) -> int:
        """Note that a prediction of the model runs, begun then (CLOCK_MONOTONIC); return its place, for `end`."""
        if not self._free:
            self._add_records()
        place = self._free.pop()
        memory = self._table.memory
        if self._ids.get(place) != model_id:
            MODEL_ID.pack_into(memory, place + _ID_OFFSET, *id_bytes(model_id))
            self._ids[place] = model_id
        self._number += 1
        _PREDICTION.pack_into(memory, place, started, self._number)  # last: one without a number is taken for free
        return place

    def end(self, place: int) -> None:
        """Note that the prediction at that place has ended."""
        self._table.cells[place // CELL + _NUMBER] = 0
        self._free.append(place)

    def read(self) -> Mapping[str, RunningPrediction]:
        """Return what runs now in all workers that live, by task id."""
        lives = cache(self._worker.lives)
        self._table.refresh()
        running: dict[str, RunningPrediction] = {}
        for place in self._table.records():
            started, number, worker, length, name = self._table.read(place)
            if number and lives(worker):
                task_id = f"{number:016x}"
                running[task_id] = RunningPrediction(task_id, id_of(length, name), started)
        return running

    def close(self) -> None:
        """Let go of the file, as the end of the process does."""
        self._table.close()

    def _add_records(self) -> None:
        keys = [secrets.token_bytes(16) for _ in range(_RECORDS_ADDED)]
        with self._table as table:
            self._free = table.places(keys)
            for place in self._free:
                table.cells[place // CELL + _WORKER] = self._worker.number


class Statistics:
    """The statistics of one server.

    A prediction does not fail because it cannot be counted: a full disk, or a worker that is stopped in the middle of a
    write, is logged once, and what cannot be written is skipped.
    """

    def __init__(self, directory: Path, running: RunningPredictions, counts: RequestCounts) -> None:
        self._directory = directory
        self._running = running
        self._counts = counts
        self._has_complained = False
        self.problem: str | None = None  # why the last request could not be counted

    @contextmanager
    def action(self, action: str, model_id: str | None = None) -> Iterator[None]:
        """Count the block as one request, and as a failure if it raises.

        NotFound, and a store that does not respond, are only counted for the server: callers can make up any number of
        ids, and each would get a record. The block has to look for the model first.
        """
        counted_for = model_id
        failed = True
        try:
            yield
            failed = False
        except (NotFound, Unavailable):
            counted_for = None
            raise
        finally:
            if action != DELETE:
                self.end(None, counted_for, FinishedAction(action, failed))
            if model_id is not None and not failed:
                self._forget(action, model_id)

    def start(self, model_id: str, started: float) -> int | None:
        """Note that a prediction of the model runs, begun then (CLOCK_MONOTONIC); return its slot, for `end`."""
        try:
            return self._running.start(model_id, started)
        except OSError as error:
            self._complain(error)
            return None

    def end(self, slot: int | None, model_id: str | None, finished: FinishedAction) -> None:
        """Count a request; `slot` is that of `start`."""
        try:
            if slot is not None:
                self._running.end(slot)
            self._counts.add(model_id, finished)
            self.problem = None
        except OSError as error:
            self._complain(error)

    def counts(self) -> Mapping[str, ActionCount]:
        """Return how often each action was requested of this server."""
        return self._counts.of_server()

    def running(self) -> Mapping[str, RunningPrediction]:
        """Return the predictions that run now on this server, by task id."""
        return self._running.read()

    def model(self, model_id: str) -> ModelFigures | None:
        """Return what is known of the model."""
        return self._counts.of_model(model_id)

    def models(self) -> dict[str, ModelFigures]:
        """Return all models of which something is known, by id."""
        return self._counts.of_models()

    def forget(self, model_id: str) -> None:
        """Remove the statistics of a model that was deleted."""
        self._counts.forget(model_id)

    def _forget(self, action: str, model_id: str) -> None:
        try:
            if action == UNDEPLOY:
                self._counts.forget_predictions(model_id)
            elif action == DELETE:
                self.forget(model_id)
        except OSError as error:
            self._complain(error)

    def _complain(self, error: OSError) -> None:
        self.problem = f"Requests cannot be counted ({error.strerror}); is the disk full, or a worker stopped?"
        if not self._has_complained:
            self._has_complained = True
            log.warning("%s Their statistics are in %s", self.problem, self._directory)


@contextmanager
def open_statistics(runtime: Path, *, is_shared: bool = True) -> Iterator[Statistics]:
    """Open the statistics of a server in the folder that its workers share, if it has more than one."""
    directory = runtime / "statistics"
    make_folder(directory)
    with (
        closing(WorkerNumber(directory / "worker")) as worker,
        closing(RunningPredictions(directory, worker, is_shared=is_shared)) as running,
        closing(RequestCounts(directory, worker.number, is_shared=is_shared)) as counts,
    ):
        yield Statistics(directory, running, counts)
