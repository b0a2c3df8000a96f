"""The file of one worker: how often each action was requested and failed, and which predictions run now.

The worker alone writes it, by a mapping, every worker of the server reads it. Its writer holds a lock on it for as
long as it lives, so that a reader knows whether what runs by the file still runs. A worker that replaces one that died
takes over its file with its counts.
"""

import errno
import fcntl
import mmap
import os
import secrets
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

ACTIONS = ("predict", "batch_predict", "register", "deploy", "undeploy")  # as ML Commons names them in its stats
MAX_ID_BYTES = 512  # of a document in OpenSearch

_PREFIX = "worker-"
_COUNTS = Struct(f"{2 * len(ACTIONS)}Q")
_CELL = 8  # bytes
# A running prediction: its number, 0 if the slot is free, its start (CLOCK_MONOTONIC), its model's id; in whole cells.
_SLOT = Struct(f"QdH{MAX_ID_BYTES}s6x")
_ID = Struct(f"H{MAX_ID_BYTES}s")
_ID_OFFSET = 2 * _CELL
_FIRST_SLOTS = 16


@dataclass(frozen=True, slots=True)
class ActionCount:
    """How often an action was requested, and how often it failed."""

    requests: int
    failures: int


@dataclass(frozen=True, slots=True)
class RunningPrediction:
    """A prediction that runs now; `started` by CLOCK_MONOTONIC, which is the same in all processes."""

    task_id: str
    model_id: str
    started: float


class WorkerFile:
    """The file of this worker, in a directory of its server: counts, then slots of running predictions.

    OSError on a full disk. Every byte is written before it is mapped: the first write to a page of a mapped file that
    finds no room on the disk would kill the process.
    """

    def __init__(self, directory: Path) -> None:
        self._file = _take_file(directory)
        self._size = _COUNTS.size if os.fstat(self._file).st_size >= _COUNTS.size else 0
        os.ftruncate(self._file, self._size)
        self._memory = mmap.mmap(-1, 1)
        self._cells, self._times = memoryview(b"").cast("Q"), memoryview(b"").cast("d")  # of what is mapped
        self._free_slots: list[int] = []  # by the cell where each begins
        self._ids: dict[int, str] = {}  # whose ids stand in the slots, free or not
        self._number = secrets.randbits(63)  # of the last prediction: no two workers give the same task id

    def count(self, action: str, *, failed: bool) -> None:
        """Count one request of an action."""
        if not self._cells:
            self._grow(_COUNTS.size)
        cells, position = self._cells, 2 * ACTIONS.index(action)
        cells[position] += 1
        if failed:
            cells[position + 1] += 1

    def start(self, model_id: str, started: float) -> int:
        """Note that a prediction of the model runs, begun then (CLOCK_MONOTONIC); return its slot, for `end`."""
        if not self._free_slots:
            self._add_slots()
        slot = self._free_slots.pop()
        if self._ids.get(slot) != model_id:
            name = model_id.encode("utf-8", "replace")[:MAX_ID_BYTES]
            _ID.pack_into(self._memory, slot * _CELL + _ID_OFFSET, len(name), name)
            self._ids[slot] = model_id
        self._times[slot + 1] = started
        self._number += 1
        self._cells[slot] = self._number  # last: a reader takes a slot without a number for free
        return slot

    def end(self, slot: int) -> None:
        """Note that the prediction of that slot has ended."""
        self._cells[slot] = 0
        self._free_slots.append(slot)

    def close(self) -> None:
        """Let go of the file, as the end of the process does."""
        self._unmap()
        os.close(self._file)

    def _add_slots(self) -> None:
        """Add as many slots as there are already."""
        before = max(self._size, _COUNTS.size)
        slots = max((before - _COUNTS.size) // _SLOT.size, _FIRST_SLOTS)
        self._grow(before + slots * _SLOT.size)
        cells = range(before // _CELL, self._size // _CELL, _SLOT.size // _CELL)
        self._free_slots = list(reversed(cells))

    def _grow(self, size: int) -> None:
        added = size - self._size
        if os.pwrite(self._file, bytes(added), self._size) != added:
            os.ftruncate(self._file, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        memory = mmap.mmap(self._file, size)
        self._unmap()
        self._size, self._memory = size, memory
        self._cells = memoryview(self._memory).cast("Q")
        self._times = memoryview(self._memory).cast("d")

    def _unmap(self) -> None:
        self._cells.release()
        self._times.release()
        self._memory.close()


def read_counts(directory: Path) -> dict[str, ActionCount]:
    """Return the counts of all workers together, without actions that were never requested."""
    sums = [0] * (2 * len(ACTIONS))
    for path in directory.glob(f"{_PREFIX}*"):
        stored = path.read_bytes()[: _COUNTS.size]
        if len(stored) == _COUNTS.size:
            sums = [one + other for one, other in zip(sums, _COUNTS.unpack(stored), strict=True)]
    return action_counts(sums)


def action_counts(numbers: Iterable[int]) -> dict[str, ActionCount]:
    """Return the counts of requests and failures, in turn for each of ACTIONS, by action."""
    pairs = iter(numbers)
    counts = {action: ActionCount(next(pairs), next(pairs)) for action in ACTIONS}
    return {action: count for action, count in counts.items() if count.requests}


def read_running(directory: Path) -> Mapping[str, RunningPrediction]:
    """Return what runs now in all workers that live, by task id."""
    running: dict[str, RunningPrediction] = {}
    for path in directory.glob(f"{_PREFIX}*"):
        with path.open("rb") as file:
            if _lock(file.fileno(), fcntl.LOCK_SH):
                continue  # its worker has ended
            data = file.read()[_COUNTS.size :]
        for number, started, length, name in _SLOT.iter_unpack(data[: len(data) // _SLOT.size * _SLOT.size]):
            if number:
                task_id = f"{number:016x}"
                running[task_id] = RunningPrediction(task_id, name[:length].decode("utf-8", "replace"), started)
    return running


def _take_file(directory: Path) -> int:
    """Open and lock the file of a worker that has ended, or a new one."""
    for path in directory.glob(f"{_PREFIX}*"):
        file = os.open(path, os.O_RDWR)
        if _lock(file, fcntl.LOCK_EX):
            return file
        os.close(file)
    file, _ = tempfile.mkstemp(prefix=_PREFIX, dir=directory)
    if _lock(file, fcntl.LOCK_EX):
        return file
    os.close(file)  # another new worker took it between these two lines
    return _take_file(directory)


def _lock(file: int, kind: int) -> bool:
    """Whether the lock could be taken at once."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
