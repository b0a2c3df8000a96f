"""Counts of the failures of background tasks, in all processes of a server, and which tasks are failing now.

They are in memory that the processes share, since a task may fail because the disk is full or because no file
descriptor is left.
"""

import mmap
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from time import monotonic

SOUND_SECONDS = 5.0  # for which a task that has failed is still reported, so that a poller sees it

_TASKS = 32  # of one process; further ones are counted as the last one
_CELL = struct.Struct("=48s80sQQd")  # name, last error, failures so far, how many fail now, when one failed last


class TaskFailures:
    """The failures in a number of processes, each of which writes its own part. `clock` is the same in all of them."""

    def __init__(self, places: int = 1, clock: Callable[[], float] = monotonic) -> None:
        self._places = places
        self._clock = clock
        self._memory = memoryview(mmap.mmap(-1, places * _TASKS * _CELL.size))

    def of(self, place: int) -> "ProcessFailures":
        """Return the part of the process at that place. Counts of its predecessor are kept."""
        size = _TASKS * _CELL.size
        return ProcessFailures(self._memory[place * size : (place + 1) * size], self._clock)

    def problems(self) -> list[str]:
        """Return a sentence for each task that is failing, or was a moment ago."""
        now, found = self._clock(), dict[str, str]()
        for name, error, count, failing, last in self._tasks():
            if failing or (count and now - last < SOUND_SECONDS):
                found[name] = f"The background task {name} has failed ({error}) and is tried again; see the log"
        return list(found.values())

    def counts(self) -> Mapping[str, int]:
        """Return how often each task has failed since the server's start."""
        counts = Counter[str]()
        for name, _, count, _, _ in self._tasks():
            counts[name] += count
        return counts

    def _tasks(self) -> Iterator[tuple[str, str, int, int, float]]:
        for place in range(self._places):
            yield from self.of(place).tasks()


class ProcessFailures:
    """The failures of one process, by the names of its tasks."""

    def __init__(self, memory: memoryview, clock: Callable[[], float]) -> None:
        self._memory = memory
        self._clock = clock

    def register(self, name: str) -> None:
        """Show the task with a count of 0, unless it has one."""
        self._change(name)

    def failed(self, name: str, error: BaseException | str, *, again: bool = False) -> None:
        """Count a failure; `again` if the task was failing already."""
        self._change(name, error=_shown(error), count=1, failing=0 if again else 1, last=self._clock())

    def recovered(self, name: str) -> None:
        """Note that a task that was failing works again or has ended."""
        self._change(name, failing=-1)

    def forget(self) -> None:
        """Note that no task is failing: the process that had this place before has ended."""
        for at, (name, error, count, _, last) in enumerate(_CELL.iter_unpack(self._memory)):
            _CELL.pack_into(self._memory, at * _CELL.size, name, error, count, 0, last)

    def tasks(self) -> Iterator[tuple[str, str, int, int, float]]:
        """Yield name, last error, failures, how many fail now, and when one failed last, monotonic."""
        for name, error, count, failing, last in _CELL.iter_unpack(self._memory):
            if name := _text(name):
                yield name, _text(error), count, failing, last

    def _change(self, name: str, *, error: str = "", count: int = 0, failing: int = 0, last: float = 0.0) -> None:
        at = self._cell_of(name)
        _, old_error, old_count, old_failing, old_last = _CELL.unpack_from(self._memory, at)
        _CELL.pack_into(
            self._memory, at, name.encode(), error.encode() or old_error, old_count + count,
            max(old_failing + failing, 0), last or old_last,
        )  # fmt: skip

    def _cell_of(self, name: str) -> int:
        wanted = name.encode()
        for at in range(0, (_TASKS - 1) * _CELL.size, _CELL.size):
            found = self._memory[at : at + 48].tobytes().rstrip(b"\0")
            if found in (b"", wanted[:48]):
                return at
        return (_TASKS - 1) * _CELL.size


def _shown(error: BaseException | str) -> str:
    """Return the type of an error; its message may quote a request, except for the system's own."""
    name = error if isinstance(error, str) else type(error).__name__
    return f"{name}: {error.strerror}" if isinstance(error, OSError) and error.strerror else name


def _text(field: bytes) -> str:
    return field.rstrip(b"\0").decode("utf-8", "replace")
