"""A table of small records that all workers of a server share: one file, mapped into each of them, under one lock.

A record is found by its key, 16 bytes of a hash, in the few slots where that may be. If those are taken, a record that
says nothing any more makes way; without one, the table grows by a level twice as large as the last. Records never
move, and a key is in one level only.
"""

import errno
import fcntl
import mmap
import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from typing import Any

from opensearch_ml_stream.plugin.locked_file import lock

MAX_LEVELS = 7  # half a million slots

_KEY_SIZE = 16
_FREE = bytes(_KEY_SIZE)
_FIRST_LEVEL = 4096  # slots
_REACH = 8  # slots of each level in which a key may be
_MAX_REMEMBERED = 4096  # places of keys

IsOver = Callable[[tuple[Any, ...]], bool]
"""Whether a record says nothing any more, so that another may take its slot; true for one of zeros."""


class SharedTable:
    """The table in a file, which is made when it is locked first: `with table:` holds the lock, for microseconds.

    OSError if it cannot be opened, TimeoutError, which is one, if another worker does not let go of it. The one worker
    of a server needs no lock: `is_shared` is false.
    """

    __slots__ = (
        "_end", "_file", "_is_shared", "_levels", "_max_levels", "_memory", "_path", "_seen", "_slot_size", "record",
    )  # fmt: skip

    def __init__(self, path: Path, record: Struct, max_levels: int | None = None, *, is_shared: bool = True) -> None:
        self.record = record
        self._is_shared = is_shared
        self._path = path
        self._max_levels = MAX_LEVELS if max_levels is None else max_levels
        self._slot_size = _KEY_SIZE + record.size
        self._file: int | None = None
        self._levels: list[tuple[int, int]] = []  # that are mapped: where each begins, and how many slots keys start at
        self._end = 0
        self._memory = mmap.mmap(-1, 1)
        self._seen: dict[bytes, int] = {}  # where keys had their records when they were found last

    def __enter__(self) -> None:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        if self._is_shared:
            lock(self._file)

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if self._is_shared and self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the file, as the end of the process does."""
        self._memory.close()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def find(self, key: bytes) -> int:
        """Return the place of the key's record, 0 if this worker has seen none. It needs no lock."""
        place = self._seen.get(key, 0)
        if place and self._memory[place - _KEY_SIZE : place] == key:
            return place
        number = int.from_bytes(key[:4], "little")
        size = self._slot_size
        for start, slots in self._levels:
            first = start + number % slots * size
            slot = self._memory.find(key, first, first + _REACH * size)
            if slot >= 0:
                if len(self._seen) == _MAX_REMEMBERED:
                    self._seen.clear()
                self._seen[key] = slot + _KEY_SIZE
                return slot + _KEY_SIZE
        return 0

    def places(self, keys: Sequence[bytes], is_over: IsOver) -> list[int]:
        """Return the place of each key's record, new ones of zeros for those that have none.

        Under the lock, and good until it is released. OSError if there is no room for all of them.
        """
        places: list[int] = []
        for key in keys:
            places.append(self.find(key) or self._new_place(key, is_over, places))
        return places

    def read(self, place: int) -> tuple[Any, ...]:
        """Return the record."""
        return self.record.unpack_from(self._memory, place)

    def write(self, place: int, *values: Any) -> None:
        """Write the record, under the lock."""
        self._memory[place : place + self.record.size] = self.record.pack(*values)  # at once, whatever kills us

    def remove(self, place: int) -> None:
        """Free the slot of the record, under the lock."""
        self._memory[place - _KEY_SIZE : place] = _FREE

    def prepare(self) -> None:
        """Make the first level, under the lock: what workers put there is seen by all who have done so, at once."""
        self._map_levels()
        if not self._levels:
            self._grow()

    def _new_place(self, key: bytes, is_over: IsOver, taken: Sequence[int]) -> int:
        self._map_levels()
        if place := self.find(key):  # where another worker has put it
            return place
        place = self._free_place(key) or self._over_place(key, is_over, taken)
        if not place:
            self._grow()
            place = self._free_place(key)
        self._memory[place : place + self.record.size] = bytes(self.record.size)
        self._memory[place - _KEY_SIZE : place] = key
        return place

    def _free_place(self, key: bytes) -> int:
        return next((place for place in self._reach(key) if self._memory[place - _KEY_SIZE : place] == _FREE), 0)

    def _over_place(self, key: bytes, is_over: IsOver, taken: Sequence[int]) -> int:
        return next((place for place in self._reach(key) if place not in taken and is_over(self.read(place))), 0)

    def _reach(self, key: bytes) -> list[int]:
        """Return all places where the key may be."""
        number, size = int.from_bytes(key[:4], "little"), self._slot_size
        firsts = [start + number % slots * size + _KEY_SIZE for start, slots in self._levels]
        return [first + slot * size for first in firsts for slot in range(_REACH)]

    def _grow(self) -> None:
        """Add a level, of which every byte is written.

        The first write to a page of a mapped file that finds no room on the disk would kill the process.
        """
        assert self._file is not None, "the lock comes first"
        if len(self._levels) == self._max_levels:
            raise OSError(errno.ENOSPC, "its table is full")
        size = self._size_of(len(self._levels))
        if os.pwrite(self._file, bytes(size), self._end) != size:
            os.ftruncate(self._file, self._end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._map_levels()

    def _map_levels(self) -> None:
        """Map the levels that were added since, by this worker or another."""
        assert self._file is not None, "the lock comes first"
        size = os.fstat(self._file).st_size
        end, levels = self._end, self._levels
        while len(levels) < self._max_levels and end + self._size_of(len(levels)) <= size:
            slots = (_FIRST_LEVEL << len(levels)) - _REACH
            levels.append((end, slots))
            end += self._size_of(len(levels) - 1)
        if end > self._end:
            self._memory.close()
            self._memory = mmap.mmap(self._file, end)
            self._end = end

    def _size_of(self, level: int) -> int:
        return (_FIRST_LEVEL << level) * self._slot_size


@lru_cache(maxsize=2048)  # the calls of a server are of the same few users and connectors
def table_key(name: str) -> bytes:
    """Return the key of a record that is known by a name, whatever is in it."""
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_KEY_SIZE).digest()
