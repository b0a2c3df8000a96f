"""How many streams are open on a server, over all its workers, by what is capped.

A record of a table that the workers share has a cell for each of them, in which that worker alone counts. What a worker
that was killed had counted is forgotten where it would be in somebody's way, and no count has to be taken back. A
stream is counted under the table's lock, for microseconds, so that no two workers take the last place.
"""

import errno
from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.plugin.shared.table import CELL, SharedTable
from opensearch_ml_stream.plugin.shared.worker_number import WorkerNumber

_FIRST_LEVEL = 512  # slots: there are seldom more users with open streams
_MAX_LEVELS = 10  # half a million


class Cap(NamedTuple):
    """So many streams of one key, as `table_key` makes it, at a time; `name` says which limit it is."""

    name: str
    key: bytes
    limit: int


class StreamCounts:
    """The counts of one worker's server, of so many workers. `directory` is shared by them, and removed with it.

    Nothing is written before the first stream is counted. One worker alone takes no lock.
    """

    def __init__(self, directory: Path, workers: int) -> None:
        self._path = directory / "open-streams"
        self._workers = workers
        self._table = SharedTable(self._path, Struct(f"{workers}Q"), _MAX_LEVELS, _FIRST_LEVEL, is_shared=workers > 1)
        self._own: WorkerNumber | None = None

    def acquire(self, caps: Sequence[Cap]) -> Cap | None:
        """Count a stream for all of its caps, or for none of them: return the first that is reached.

        Unavailable if it cannot be counted: nothing that is capped goes on uncounted.
        """
        try:
            with self._table:
                return self._acquire(self._own or self._join(), caps)
        except OSError as error:
            raise Unavailable(
                f"The open streams cannot be counted in {self._path.parent} ({error.strerror}); check that its disk "
                "is not full"
            ) from error

    def release(self, caps: Sequence[Cap]) -> None:
        """Count a stream no longer. It waits for nobody, and cannot fail."""
        assert self._own is not None, "acquire comes first"
        table, number = self._table, self._own.number
        for cap in caps:
            table.cells[table.find(cap.key) // CELL + number] -= 1

    def close(self) -> None:
        """Let go of the files, as the end of the process does."""
        self._table.close()
        if self._own is not None:
            self._own.close()

    def _acquire(self, own: WorkerNumber, caps: Sequence[Cap]) -> Cap | None:
        table = self._table
        places = table.places([cap.key for cap in caps], _counts_nothing)
        for cap, place in zip(caps, places, strict=True):
            counts = table.read(place)
            if sum(counts) >= cap.limit and self._sum_of_living(own, counts) >= cap.limit:
                return cap
        cells, number = table.cells, own.number
        for place in places:
            cells[place // CELL + number] += 1
        return None

    def _join(self) -> WorkerNumber:
        """Take the number of a worker that has ended, or a new one, and forget what was counted by it."""
        own = WorkerNumber(self._path)
        if own.number >= self._workers:
            own.close()
            raise OSError(errno.EUSERS, "it has more workers than there should be")
        self._table.clear_cell(own.number)
        self._own = own
        return own

    def _sum_of_living(self, own: WorkerNumber, counts: Sequence[int]) -> int:
        """Return the sum of a record without those who live no more; all that they had counted is forgotten."""
        living = 0
        for number, count in enumerate(counts):
            if count and not own.lives(number):
                self._table.clear_cell(number)
            else:
                living += count
        return living


def _counts_nothing(record: tuple[int, ...]) -> bool:
    return not any(record)
