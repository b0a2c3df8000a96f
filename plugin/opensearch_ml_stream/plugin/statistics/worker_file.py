"""The file of one worker: how often each action was requested and failed, and which predictions run now.

The worker alone writes it, every worker of the server reads it. Its writer holds a lock on it for as long as it lives,
so that a reader knows whether what runs by the file still runs. A worker that replaces one that died takes over its
file with its counts.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

ACTIONS = ("predict", "batch_predict", "register", "deploy", "undeploy")  # as ML Commons names them in its stats
MAX_ID_BYTES = 512  # of a document in OpenSearch

_PREFIX = "worker-"
_COUNTS = Struct(f"{2 * len(ACTIONS)}Q")
SLOT = Struct(f"QdH{MAX_ID_BYTES}s")  # of a running prediction: its number, its start (CLOCK_MONOTONIC), its model's id
FIRST_SLOT = _COUNTS.size
FREE = bytes(8)  # written over the number


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
    """The file of this worker, in a directory of its server.

    Behind the counts, from FIRST_SLOT on, lie slots of running predictions; `request_statistics` writes them.
    """

    def __init__(self, directory: Path) -> None:
        self.descriptor = _take_file(directory)
        stored = os.pread(self.descriptor, _COUNTS.size, 0)
        self._counts = list(_COUNTS.unpack(stored)) if len(stored) == _COUNTS.size else [0] * (2 * len(ACTIONS))
        os.ftruncate(self.descriptor, _COUNTS.size)

    def count(self, action: str, *, failed: bool) -> None:
        """Count one request of an action; OSError on a full disk."""
        position = 2 * ACTIONS.index(action)
        self._counts[position] += 1
        self._counts[position + 1] += failed
        os.pwrite(self.descriptor, _COUNTS.pack(*self._counts), 0)

    def close(self) -> None:
        """Let go of the file, as the end of the process does."""
        os.close(self.descriptor)


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
        for number, started, length, name in SLOT.iter_unpack(data[: len(data) // SLOT.size * SLOT.size]):
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
