"""Lock-outs: after five wrong passwords in a row a user name is locked for a minute, on all workers of a server.

A name is a slot of one small file that the workers share, so that no number of names takes more room. Addresses are
not counted: behind one proxy stand many users. A caller whose password was found right goes on meanwhile.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from math import ceil
from pathlib import Path
from time import monotonic

from opensearch_ml_stream.connectors.errors import Throttled, Unavailable
from opensearch_ml_stream.plugin.locked_file import locked

MAX_FAILURES = 5
LOCKED_SECONDS = 60.0

_SLOT = struct.Struct("dd")  # failures in a row, and when the last one was (CLOCK_MONOTONIC)


class Lockouts:
    """Counts wrong passwords. `directory` is shared by the workers and removed with the server.

    Names that no user has are counted in a file of their own: however many are tried, no user is locked out by them.
    """

    def __init__(self, directory: Path, *, of_users: bool = True) -> None:
        self._path = directory / ("lockouts" if of_users else "lockouts-of-unknown-names")

    def check(self, name: str) -> None:
        """Raise Throttled (429, `retry_after` in seconds) while the name is locked."""
        with self._slot(name) as (file, offset):
            _unlocked(*_read(file, offset))

    def count_attempt(self, name: str) -> None:
        """Count an attempt as one that fails, before its password is checked: those at the same time are counted too.

        Raise Throttled while the name is locked.
        """
        with self._slot(name) as (file, offset):
            failures = _unlocked(*_read(file, offset))
            os.pwrite(file, _SLOT.pack(failures + 1, monotonic()), offset)

    def forget(self, name: str) -> None:
        """Count from zero again, since the password was right."""
        with self._slot(name) as (file, offset):
            os.pwrite(file, _SLOT.pack(0.0, 0.0), offset)

    @contextmanager
    def _slot(self, name: str) -> Iterator[tuple[int, int]]:
        offset = int.from_bytes(sha256(name.encode("utf-8", "surrogateescape")).digest()[:2]) * _SLOT.size
        try:
            with locked(self._path) as file:
                yield file, offset
        except OSError as error:
            raise Unavailable(
                f"Logins cannot be counted in {self._path} ({error.strerror}); check that its disk is not full"
            ) from error


def locked_out(seconds: float) -> Throttled:
    """Return the error for a name that is locked."""
    left = str(ceil(seconds))
    return Throttled(f"Too many wrong passwords for this user; try again in {left} s", retry_after=left)


def _read(file: int, offset: int) -> tuple[float, float]:
    stored = os.pread(file, _SLOT.size, offset)
    return _SLOT.unpack(stored) if len(stored) == _SLOT.size else (0.0, 0.0)


def _unlocked(failures: float, last: float) -> float:
    """Return how many failures count; Throttled for too many."""
    left = last + LOCKED_SECONDS - monotonic()
    if failures < MAX_FAILURES:
        return failures
    if left <= 0:
        return 0.0
    raise locked_out(left)
