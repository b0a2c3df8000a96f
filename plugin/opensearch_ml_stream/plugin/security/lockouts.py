"""Lock-outs: after five wrong passwords in a row a user name is locked for a minute, on all workers of a server.

A name is a slot of one small file that the workers share, so that no number of names takes more room. Addresses are
not counted: behind one proxy stand many users. A caller whose password was found right goes on meanwhile.
"""

import os
import struct
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
    """Counts wrong passwords. `directory` is shared by the workers and removed with the server."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "lockouts"

    def check(self, name: str) -> None:
        """Raise Throttled (429, `retry_after` in seconds) while the name is locked."""
        failures, last = self._change(name, 0)
        left = last + LOCKED_SECONDS - monotonic()
        if failures >= MAX_FAILURES and left > 0:
            raise Throttled(
                f"Too many wrong passwords for this user; try again in {ceil(left)} s",
                retry_after=str(ceil(left)),
            )

    def count_failure(self, name: str) -> None:
        """Count a wrong password."""
        self._change(name, 1)

    def forget(self, name: str) -> None:
        """Count from zero again, since the password was right."""
        self._change(name, -1)

    def _change(self, name: str, by: int) -> tuple[float, float]:
        """Return failures and time of the last, after adding one or, for -1, forgetting all."""
        offset = int.from_bytes(sha256(name.encode("utf-8", "surrogateescape")).digest()[:2]) * _SLOT.size
        try:
            with locked(self._path) as file:
                return _change_slot(file, offset, by)
        except OSError as error:
            raise Unavailable(
                f"Logins cannot be counted in {self._path} ({error.strerror}); check that its disk is not full"
            ) from error


def _change_slot(file: int, offset: int, by: int) -> tuple[float, float]:
    stored = os.pread(file, _SLOT.size, offset)
    failures, last = _SLOT.unpack(stored) if len(stored) == _SLOT.size else (0.0, 0.0)
    now = monotonic()
    if failures >= MAX_FAILURES and now >= last + LOCKED_SECONDS:
        failures = 0.0
    if by:
        failures, last = (failures + 1, now) if by > 0 else (0.0, 0.0)
        os.pwrite(file, _SLOT.pack(failures, last), offset)
    return failures, last
