"""Lock-outs: after five wrong passwords in a row a user name is locked for a minute, on all workers of a server.

A name has a record in a table that the workers share, which may be replaced after its minute. Addresses are not
counted, since many users may share a proxy. A caller who is already logged in is not locked out.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from math import ceil
from pathlib import Path
from struct import Struct
from time import monotonic

from opensearch_ml_stream.connectors.errors import Throttled, Unavailable
from opensearch_ml_stream.plugin.shared.table import SharedTable

MAX_FAILURES = 5
LOCKED_SECONDS = 60.0

_RECORD = Struct("dd")  # failures in a row, and when the last one was (CLOCK_MONOTONIC)


class Lockouts:
    """Counts wrong passwords. `directory` is shared by the workers and removed with the server.

    Names without a user are counted in a file of their own, so that any number of them locks no user out.
    """

    def __init__(self, directory: Path, *, of_users: bool = True) -> None:
        self._path = directory / ("lockouts" if of_users else "lockouts-of-unknown-names")
        self._table = SharedTable(self._path, _RECORD)

    def close(self) -> None:
        """Let go of the file."""
        self._table.close()

    def check(self, name: str) -> None:
        """Raise Throttled (429, `retry_after` in seconds) while the name is locked."""
        with self._place(name) as place:
            if place:
                _unlocked(*self._table.read(place))

    def count_attempt(self, name: str) -> None:
        """Count an attempt as failed before its password is checked, so that concurrent attempts are counted too.

        Raise Throttled while the name is locked.
        """
        with self._place(name, new=True) as place:
            failures = _unlocked(*self._table.read(place))
            self._table.write(place, failures + 1, monotonic())

    def forget(self, name: str) -> None:
        """Count from zero again, since the password was right."""
        with self._place(name) as place:
            if place:
                self._table.remove(place)

    @contextmanager
    def _place(self, name: str, *, new: bool = False) -> Iterator[int]:
        """Lock the table for the block; yield the place of the name's record, 0 if it has none, unless `new`."""
        key = sha256(name.encode("utf-8", "surrogateescape")).digest()[:16]  # of any length: no cache may keep it
        try:
            with self._table as table:
                table.refresh()
                yield table.places([key], _is_over)[0] if new else table.find(key)
        except OSError as error:
            raise Unavailable(
                f"Logins cannot be counted in {self._path} ({error.strerror}); check that its disk is not full"
            ) from error


def locked_out(seconds: float) -> Throttled:
    """Return the error for a name that is locked."""
    left = str(ceil(seconds))
    return Throttled(f"Too many wrong passwords for this user; try again in {left} s", retry_after=left)


def _unlocked(failures: float, last: float) -> float:
    """Return how many failures count; Throttled for too many."""
    if failures < MAX_FAILURES:
        return failures
    left = last + LOCKED_SECONDS - monotonic()
    if left <= 0:
        return 0.0
    raise locked_out(left)


def _is_over(record: tuple[float, float]) -> bool:
    return record[1] <= monotonic() - LOCKED_SECONDS
