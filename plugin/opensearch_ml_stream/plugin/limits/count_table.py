"""Counts by key in a file that several processes map: one writes them, all read them.

A hash table with linear probing (Knuth, The Art of Computer Programming, volume 3, section 6.4, algorithms L and R).
Keys are integers of 64 bits that are evenly spread already, and never 0.
"""

import errno
import mmap
import os

_CELL = 8  # bytes; an entry is two cells: the key, 0 if the entry is free, and its count
_ENTRY = 2 * _CELL
_MAX_REMEMBERED = 4096  # cells of keys


class CountTable:
    """A table in an open file, which belongs to it from now on; `write_empty` has to come first, in some process.

    A count may be read while its writer changes it, all else needs a lock around both.
    """

    def __init__(self, file: int, *, writes: bool) -> None:
        self.file = file
        self._map = mmap.mmap(file, 0, access=mmap.ACCESS_WRITE if writes else mmap.ACCESS_READ)
        self._cells = memoryview(self._map).cast("Q")
        self._capacity = len(self._cells) // 2
        self._used = 0
        self._seen: dict[int, int] = {}  # where keys were found last

    def count(self, key: int) -> int:
        """Return the key's count, 0 if it has none."""
        return self._cells[self._find(key) + 1]

    def has_room(self, keys: int) -> bool:
        """Whether so many more keys fit in; a table that is more than half full is slow."""
        return 2 * (self._used + keys) <= self._capacity

    def increase(self, key: int) -> None:
        """Count one more; there must be room for the key."""
        place = self._find(key)
        if not self._cells[place]:
            self._cells[place] = key
            self._used += 1
        self._cells[place + 1] += 1

    def decrease(self, key: int) -> int:
        """Count one less, and return what is left. The entry stays, also of 0."""
        place = self._find(key) + 1
        left = self._cells[place] = self._cells[place] - 1
        return left

    def remove_if_zero(self, key: int) -> None:
        """Free the key's entry, unless it counts something."""
        place = self._find(key)
        if self._cells[place] and not self._cells[place + 1]:
            self._free(place)
            self._used -= 1

    def close(self) -> None:
        """Let go of the file, as the end of the process does."""
        self._cells.release()
        self._map.close()
        os.close(self.file)

    def _find(self, key: int) -> int:
        """Return the first cell of the key's entry, or of the free one where it belongs."""
        cells = self._cells
        place = self._seen.get(key, 0)
        if cells[place] == key:
            return place
        place = self._home(key)
        while (found := cells[place]) and found != key:
            place = (place + 2) % len(cells)
        if len(self._seen) == _MAX_REMEMBERED:
            self._seen.clear()
        self._seen[key] = place
        return place

    def _home(self, key: int) -> int:
        return key % self._capacity * 2

    def _free(self, free: int) -> None:
        """Free an entry, and move those up that had to make way for it: a search ends at the first free one."""
        cells = self._cells
        size = len(cells)
        place = free
        while cells[place := (place + 2) % size]:
            if (place - self._home(cells[place])) % size >= (place - free) % size:
                cells[free] = cells[place]
                cells[free + 1] = cells[place + 1]
                free = place
        cells[free] = cells[free + 1] = 0


def write_empty(file: int, entries: int) -> None:
    """Make the file a table without counts; OSError if the disk has no room for all of it.

    Every byte is written: the first write to a page of a mapped file that finds no room would kill the process.
    """
    size = entries * _ENTRY
    if os.pwrite(file, bytes(size), 0) != size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def clear(table: CountTable) -> None:
    """Forget all counts of a table whose writer has ended."""
    os.pwrite(table.file, bytes(os.fstat(table.file).st_size), 0)
