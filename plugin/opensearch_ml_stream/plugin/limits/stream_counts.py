"""How many streams are open on a server, over all its workers, by what is capped.

Each worker counts its own in a table that the others read, and holds a lock on its file for as long as it lives: what
a worker that was killed had counted is forgotten where it would be in somebody's way, and no count has to be taken
back. A stream is counted under one lock of the server, for microseconds, so that no two workers take the last place.
"""

import errno
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.plugin.limits.count_table import CountTable, clear, write_empty
from opensearch_ml_stream.plugin.locked_file import lock

MAX_CAPS = 4  # that one stream counts for
MAX_COUNTED_STREAMS = 65_536  # of one worker, which has no more connections
_KEPT = 64  # keys that count nothing and keep their entries: most will soon count again
_LOCK_FILE = "open-streams"  # as many bytes long as there are tables
_TABLE = "open-streams-{}"


class Cap(NamedTuple):
    """So many streams of one key at a time; `name` says which limit it is."""

    name: str
    key: int
    limit: int


class StreamCounts:
    """The counts of one worker's server. `directory` is shared by its workers, and removed with it.

    Nothing is written before the first stream is counted. A worker has `max_streams` at most. `is_shared` is whether
    the server has more than one worker: one alone takes no lock.
    """

    def __init__(self, directory: Path, max_streams: int, *, is_shared: bool = True) -> None:
        self._directory = directory
        self._is_shared = is_shared
        self._lock: int | None = None  # the open lock file
        self._entries = 2 * MAX_CAPS * (min(max_streams, MAX_COUNTED_STREAMS) + 1)  # half of them are never used
        self._own: CountTable | None = None
        self._tables: list[CountTable] = []  # of all workers there have been; a new one takes over that of a dead one
        self._ended: set[int] = set()  # keys of ours that may count nothing any more

    def acquire(self, caps: Sequence[Cap]) -> Cap | None:
        """Count a stream for all of its caps, or for none of them: return the first that is reached.

        Unavailable if it cannot be counted: nothing that is capped goes on uncounted.
        """
        try:
            if self._lock is None:
                self._lock = os.open(self._directory / _LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
            if not self._is_shared:
                return self._acquire(self._lock, caps)
            lock(self._lock)
            try:
                return self._acquire(self._lock, caps)
            finally:
                fcntl.flock(self._lock, fcntl.LOCK_UN)
        except OSError as error:
            raise Unavailable(
                f"The open streams cannot be counted in {self._directory} ({error.strerror}); check that its disk is "
                "not full"
            ) from error

    def release(self, caps: Sequence[Cap]) -> None:
        """Count a stream no longer. It waits for nobody, and cannot fail."""
        assert self._own is not None, "acquire comes first"
        for cap in caps:
            if not self._own.decrease(cap.key):
                self._ended.add(cap.key)

    def close(self) -> None:
        """Let go of the files, as the end of the process does."""
        self._close_tables()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _acquire(self, lock_file: int, caps: Sequence[Cap]) -> Cap | None:
        own = self._own or self._join(lock_file)
        self._free_entries(own, _KEPT)
        if self._is_shared:
            self._open_tables(os.fstat(lock_file).st_size)
        for cap in caps:
            if self._count(cap.key) >= cap.limit:
                self._forget_dead_workers(own)
                if self._count(cap.key) >= cap.limit:
                    return cap
        if not own.has_room(len(caps)):
            self._free_entries(own, 0)
        if not own.has_room(len(caps)):
            raise OSError(errno.ENOSPC, "its table is full")
        for cap in caps:
            own.increase(cap.key)
        return None

    def _free_entries(self, own: CountTable, kept: int) -> None:
        """Free the entries of keys that count nothing any more, but for so many."""
        while len(self._ended) > kept:
            own.remove_if_zero(self._ended.pop())

    def _count(self, key: int) -> int:
        count = 0
        for table in self._tables:
            count += table.count(key)
        return count

    def _join(self, lock_file: int) -> CountTable:
        """Take over the table of a worker that has ended, or add one."""
        number_of_tables = os.fstat(lock_file).st_size
        number, file = self._take_table()
        try:
            write_empty(file, self._entries)
            self._open_tables(number)
            own = CountTable(file, writes=True)
        except OSError:
            os.close(file)
            self._close_tables()
            raise
        self._own = own
        self._tables.append(own)
        if number == number_of_tables:
            os.pwrite(lock_file, b"\0", number)
        return own

    def _take_table(self) -> tuple[int, int]:
        """Return the number and the open file of the first table that no worker holds."""
        number = 0
        while not _take(file := self._open(number), fcntl.LOCK_EX):
            os.close(file)
            number += 1
        return number, file

    def _open_tables(self, until: int) -> None:
        for number in range(len(self._tables), until):
            self._tables.append(CountTable(self._open(number), writes=False))

    def _close_tables(self) -> None:
        for table in self._tables:
            table.close()
        self._tables.clear()

    def _open(self, number: int) -> int:
        return os.open(self._directory / _TABLE.format(number), os.O_RDWR | os.O_CREAT, 0o600)

    def _forget_dead_workers(self, own: CountTable) -> None:
        for table in self._tables:
            if table is not own and _take(table.file, fcntl.LOCK_SH):
                clear(table)
                fcntl.flock(table.file, fcntl.LOCK_UN)


def _take(file: int, kind: int) -> bool:
    """Whether the lock could be taken at once."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
