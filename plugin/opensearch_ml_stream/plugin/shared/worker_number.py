"""The numbers of a server's workers, by which they tell what is whose, and who of them lives."""

import fcntl
import os
from pathlib import Path

from opensearch_ml_stream.plugin.shared.locked_file import open_shared, try_to_lock


class WorkerNumber:
    """The least number that no other living worker has: that of one that has ended goes to its successor.

    A worker holds the lock of a file, `path` with its number, for as long as it lives.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: dict[int, int] = {}  # those that are open, by number
        self.number = 0
        while not try_to_lock(self._file(self.number)):
            self.number += 1

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
