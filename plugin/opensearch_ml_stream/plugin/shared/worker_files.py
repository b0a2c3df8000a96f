"""Files that all workers of a server write: locks, room on the disk, and the workers' numbers."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

LOCK_SECONDS = 0.1  # waited at most: a worker that is stopped while it holds a lock stops no other
_LOOK_SECONDS = 0.0002


@contextmanager
def locked(path: str | Path) -> Iterator[int]:
    """Open and lock the file, created if needed; the block gets its descriptor, and holds the lock for microseconds.

    OSError if it cannot be opened; TimeoutError, a subclass, if another worker does not release it.
    """
    file = open_shared(path)
    try:
        lock(file)
        yield file
    finally:
        os.close(file)


def open_shared(path: str | Path) -> int:
    """Open the file for its owner alone, created if needed.

    A folder that was removed, as by a cleaner of /tmp, is created again: otherwise a worker could never start again.
    """
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        make_folder(Path(path).parent)
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def make_folder(path: Path) -> None:
    """Create the folder and its missing parents for their owner alone."""
    if not path.parent.exists():
        make_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)


def lock(file: int) -> None:
    """Lock an open file until it is closed or unlocked (`fcntl.LOCK_UN`); TimeoutError after LOCK_SECONDS."""
    if try_to_lock(file):  # as nearly always
        return
    give_up = monotonic() + LOCK_SECONDS
    while not try_to_lock(file):
        if monotonic() > give_up:
            raise TimeoutError(errno.ETIMEDOUT, "another worker holds a file of it")
        sleep(_LOOK_SECONDS)


def try_to_lock(file: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Whether the open file could be locked at once, until it is closed or unlocked."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def append_zeros(file: int, end: int, size: int) -> None:
    """Extend an open file of `end` bytes by `size`; OSError, and it stays as it was, if the disk has no room.

    Every byte is written before it is mapped: the first write to a mapped page for which the disk has no room would
    kill the process (SIGBUS).
    """
    if os.pwrite(file, bytes(size), end) != size:
        os.ftruncate(file, end)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class WorkerNumber:
    """The lowest number that no other living worker has; a worker that has ended passes its number to its successor.

    A worker holds the lock of a file, `path` with its number, as long as it lives.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: dict[int, int] = {}  # those that are open, by number
        self.number = 0
        try:
            while not try_to_lock(self._file(self.number)):
                self.number += 1
        except OSError:
            self.close()
            raise

    def lives(self, number: int) -> bool:
        """Whether a worker with that number lives."""
        if number == self.number or not try_to_lock(self._file(number), fcntl.LOCK_SH):
            return True
        fcntl.flock(self._file(number), fcntl.LOCK_UN)
        return False

    def close(self) -> None:
        """Let go of the files, as the end of the process does."""
        while self._files:
            os.close(self._files.popitem()[1])

    def _file(self, number: int) -> int:
        file = self._files.get(number)
        if file is None:
            file = self._files[number] = open_shared(f"{self._path}-{number}")
        return file
