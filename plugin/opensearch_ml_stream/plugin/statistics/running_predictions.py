"""Which predictions run now: records of a table that the workers share, each of them one worker's own.

A worker makes some under the table's lock and uses them again and again without it: it alone writes them. What runs by
the records of a worker that has ended runs no more; its successor takes them over.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from struct import Struct

from opensearch_ml_stream.plugin.shared.table import CELL, SharedTable
from opensearch_ml_stream.plugin.shared.worker_number import WorkerNumber
from opensearch_ml_stream.plugin.statistics.request_counts import MAX_ID_BYTES, MODEL_ID, id_bytes, id_of

# The prediction's start (CLOCK_MONOTONIC), its number or 0 if there is none, the number of its worker, its model's id.
_RECORD = Struct(f"dQQQ{MAX_ID_BYTES}s")
_PREDICTION = Struct("dQ")
_NUMBER, _WORKER = 1, 2  # cells
_ID_OFFSET = 3 * CELL
_RECORDS_ADDED = 16  # at a time
_FIRST_LEVEL = 64  # slots of half a KiB
_MAX_LEVELS = 14  # a million slots


@dataclass(frozen=True, slots=True)
class RunningPrediction:
    """A prediction that runs now; `started` by CLOCK_MONOTONIC, which is the same in all processes."""

    task_id: str
    model_id: str
    started: float


class RunningPredictions:
    """The predictions that run on a server, as one worker notes and reads them, in a directory of all. OSError."""

    def __init__(self, directory: Path, worker: WorkerNumber, *, is_shared: bool = True) -> None:
        self._worker = worker
        self._table = SharedTable(directory / "running", _RECORD, _MAX_LEVELS, _FIRST_LEVEL, is_shared=is_shared)
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
