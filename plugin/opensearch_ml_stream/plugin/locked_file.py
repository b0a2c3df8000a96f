"""Files in the server's own folder that all its workers write, one at a time."""

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
    """Open the file, new or not, and lock it; the block gets its descriptor, and holds it for microseconds.

    OSError if it cannot be opened, TimeoutError, which is one, if another worker does not let go of it.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        lock(file)
        yield file
    finally:
        os.close(file)


def lock(file: int) -> None:
    """Lock an open file until it is closed or unlocked (`fcntl.LOCK_UN`); TimeoutError after LOCK_SECONDS."""
    if _try_to_lock(file):  # as nearly always
        return
    give_up = monotonic() + LOCK_SECONDS
    while not _try_to_lock(file):
        if monotonic() > give_up:
            raise TimeoutError(errno.ETIMEDOUT, "another worker holds a file of it")
        sleep(_LOOK_SECONDS)


def _try_to_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
