"""Heartbeats of the workers, in memory shared with their supervisor: a turn of the loop, counted each second."""

import mmap

BEAT_SECONDS = 1.0
_CELLS = 2  # of each worker: its beats, and whether it is ready


class Heartbeats:
    """The heartbeats of all workers, each at its place; what one process writes the others see, if it forked them."""

    def __init__(self, places: int) -> None:
        self._cells = memoryview(mmap.mmap(-1, 8 * _CELLS * places)).cast("Q")

    def forget(self, place: int) -> None:
        """Begin anew for another worker at this place."""
        self._cells[place * _CELLS] = self._cells[place * _CELLS + 1] = 0

    def count(self, place: int) -> int:
        """Return how often the worker has turned its loop."""
        return self._cells[place * _CELLS]

    def is_ready(self, place: int) -> bool:
        """Return whether the worker serves."""
        return self._cells[place * _CELLS + 1] == 1

    def set_ready(self, place: int) -> None:
        """Note that the worker serves."""
        self._cells[place * _CELLS + 1] = 1

    async def beat(self, place: int) -> float:
        """Count a turn of this event loop; return the seconds until the next that is to be counted."""
        self._cells[place * _CELLS] += 1
        return BEAT_SECONDS
