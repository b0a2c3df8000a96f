"""A table of fixed-size records that all workers of a server share: one memory-mapped file under one lock.

A record is found by its key, 16 bytes of a hash, in the few slots where that may be. If those are taken, a record that
is no longer needed is replaced; if there is none, the table grows by a level twice as large as the last. Records never
move, and a key is in one level only. So a worker may read, and change what only it changes, without the lock.
"""

import errno
import fcntl
import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from typing import Any

from opensearch_ml_stream.plugin.shared.worker_files import append_zeros, lock, open_shared

FIRST_LEVEL = 4096  # slots
MAX_LEVELS = 7  # half a million slots
CELL = 8  # bytes; a record is so many cells

_HEADER_SIZE = CELL  # how many records there are
_KEY_SIZE = 16
_FREE = bytes(_KEY_SIZE)
_HEAD = Struct("Q")  # the first cell of a key
_REACH = 8  # slots of each level in which a key may be
_MAX_REMEMBERED = 4096  # places of keys

IsOver = Callable[[tuple[Any, ...]], bool]
"""Whether a record says nothing any more, so that another may take its slot; true for one of zeros."""


class SharedTable:
    """The table in a file, which is created when it is first locked: `with table:` holds the lock, for microseconds.

    OSError if the file cannot be opened; TimeoutError, a subclass, if another worker does not release it. `is_shared`
    is false for the only worker of a server, which needs no lock.

    A record is whole cells, at a place in `memory`, and at place // CELL in `cells`, which has the same bytes as
    integers. Nothing may keep a reference to those two: both are replaced when the table grows.
    """

    __slots__ = (
        "_end", "_file", "_first_level", "_is_shared", "_levels", "_max_levels", "_path", "_seen", "_slot_size",
        "cells", "memory", "record",
    )  # fmt: skip

    def __init__(
        self,
        path: Path,
        record: Struct,
        max_levels: int | None = None,
        first_level: int | None = None,
        *,
        is_shared: bool = True,
    ) -> None:
        self.record = record
        self._is_shared = is_shared
        self._path = path
        self._first_level = first_level or FIRST_LEVEL
        self._max_levels = max_levels or MAX_LEVELS
        self._slot_size = _KEY_SIZE + record.size
        self._file: int | None = None
        self._levels: list[tuple[int, int]] = []  # that are mapped: where each begins, and how many slots keys start at
        self._end = _HEADER_SIZE
        self.memory = mmap.mmap(-1, _HEADER_SIZE)
        self.cells = memoryview(self.memory).cast("Q")
        self._seen: dict[bytes, int] = {}  # where keys had their records when they were found last

    def __enter__(self) -> "SharedTable":
        file = self._file or self._open()
        if self._is_shared:
            lock(file)
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if self._is_shared and self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the file, as the end of the process does."""
        self.cells.release()
        self.memory.close()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def prepare(self) -> None:
        """Make the first level, under the lock. All workers that have done so see each other's records at once."""
        self.refresh()
        if not self._levels:
            self._grow()

    def refresh(self) -> None:
        """Map the levels that were added since, by this worker or another. It needs no lock."""
        file = self._open()
        size = os.fstat(file).st_size
        end, levels = self._end, list(self._levels)
        while len(levels) < self._max_levels and end + self._size_of(len(levels)) <= size:
            slots = (self._first_level << len(levels)) - _REACH
            levels.append((end, slots))
            end += self._size_of(len(levels) - 1)
        if end > self._end:
            memory = mmap.mmap(file, end)  # first, as it may fail: it takes a descriptor of its own
            self.cells.release()
            self.memory.close()
            self.memory, self.cells = memory, memoryview(memory).cast("Q")
            self._end, self._levels = end, levels

    @property
    def is_empty(self) -> bool:
        """Whether there is no record in a table that this worker has prepared. It needs no lock."""
        return not self.cells[0]

    def find(self, key: bytes) -> int:
        """Return the place of the key's record, 0 if this worker has seen none. It needs no lock."""
        place = self._seen.get(key, 0)
        if place and self.memory[place - _KEY_SIZE : place] == key:
            return place
        place = self._place_in_reach(key, key)
        if place:
            if len(self._seen) == _MAX_REMEMBERED:
                self._seen.clear()
            self._seen[key] = place
        return place

    def places(self, keys: Sequence[bytes], is_over: IsOver | None = None) -> list[int]:
        """Return the place of each key's record; keys without one get a new record of zeros.

        Under the lock; a place is valid until its record is removed or replaced. OSError if there is no room for all of
        them.
        """
        places: list[int] = []
        for key in keys:
            places.append(self.find(key) or self._new_place(key, is_over, places))
        return places

    def records(self) -> Iterator[int]:
        """Return the places of all records in the levels that this worker has mapped. It needs no lock."""
        size = self._slot_size
        for start, slots in self._levels:
            for place in range(start + _KEY_SIZE, start + (slots + _REACH) * size, size):
                if self.memory[place - _KEY_SIZE : place] != _FREE:
                    yield place

    def read(self, place: int) -> tuple[Any, ...]:
        """Return the record."""
        return self.record.unpack_from(self.memory, place)

    def write(self, place: int, *values: Any) -> None:
        """Write the record, under the lock."""
        self.memory[place : place + self.record.size] = self.record.pack(*values)  # at once, whatever kills us

    def clear_cell(self, number: int) -> None:
        """Make the cell of that number 0 in all records, under the lock."""
        self.refresh()
        step = self._slot_size // CELL
        for start, slots in self._levels:
            first = (start + _KEY_SIZE) // CELL + number
            zeros = memoryview(bytes((slots + _REACH) * CELL)).cast("Q")
            self.cells[first : first + len(zeros) * step : step] = zeros

    def remove(self, place: int) -> None:
        """Free the slot of the record, under the lock."""
        self.memory[place - _KEY_SIZE : place] = _FREE
        self.cells[0] -= 1

    def _open(self) -> int:
        if self._file is None:
            self._file = open_shared(self._path)
        return self._file

    def _new_place(self, key: bytes, is_over: IsOver | None, taken: Sequence[int]) -> int:
        self.refresh()
        if place := self.find(key):  # where another worker has put it
            return place
        place = self._place_in_reach(key, _FREE)
        if not place and is_over is not None:
            place = self._over_place(key, is_over, taken)
        if not place:
            self._grow()
            place = self._place_in_reach(key, _FREE)
        if self.memory[place - _KEY_SIZE : place] == _FREE:
            self.cells[0] += 1  # first: whoever is killed has counted too much, but never too little
        self.memory[place : place + self.record.size] = bytes(self.record.size)
        self.memory[place - _KEY_SIZE : place] = key
        return place

    def _place_in_reach(self, key: bytes, found: bytes) -> int:
        """Return the first place where the key may be that has the key `found`, 0 if none has."""
        [head], memory, size = _HEAD.unpack_from(found), self.memory, self._slot_size
        for first in self._reach(key):
            end = first + _REACH * size
            if head in self.cells[first // CELL : end // CELL : size // CELL]:
                for place in range(first + _KEY_SIZE, end, size):
                    if memory[place - _KEY_SIZE : place] == found:
                        return place
        return 0

    def _over_place(self, key: bytes, is_over: IsOver, taken: Sequence[int]) -> int:
        size = self._slot_size
        for first in self._reach(key):
            for place in range(first + _KEY_SIZE, first + _REACH * size, size):
                if place not in taken and is_over(self.read(place)):
                    return place
        return 0

    def _reach(self, key: bytes) -> list[int]:
        """Return where the slots begin in which the key may be, _REACH of each level."""
        [number], size = _HEAD.unpack_from(key), self._slot_size
        return [start + number % slots * size for start, slots in self._levels]

    def _grow(self) -> None:
        """Add a level."""
        if len(self._levels) == self._max_levels:
            raise OSError(errno.ENOSPC, "its table is full")
        end = self._end if self._levels else 0  # the header comes with the first level
        append_zeros(self._open(), end, self._end + self._size_of(len(self._levels)) - end)
        self.refresh()

    def _size_of(self, level: int) -> int:
        return (self._first_level << level) * self._slot_size


@lru_cache(maxsize=2048)  # the calls of a server are of the same few users, models and connectors
def table_key(name: str) -> bytes:
    """Return the key of a record that is known by a name, whatever is in it."""
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_KEY_SIZE).digest()
