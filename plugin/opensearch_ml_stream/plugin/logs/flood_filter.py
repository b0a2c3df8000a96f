"""Bounds the log: what happens a thousand times a second is written a few times a minute, and then counted."""

import logging
from collections.abc import Callable
from time import monotonic

from opensearch_ml_stream.plugin.logs.line_format import FIELDS

KIND = "kind"  # the attribute of a record that says which lines are alike; else its message without values does
WINDOW_SECONDS = 60.0
MAX_LINES_ALIKE = 10
MAX_LINES = 300  # of all kinds: no caller who varies what fails can fill a disk


class FloodFilter(logging.Filter):
    """Lets MAX_LINES_ALIKE lines of a kind through in WINDOW_SECONDS; the first line of the next window has the count.

    `unbounded` is a logger whose lines are wanted, each of them.
    """

    def __init__(self, unbounded: str, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._unbounded = unbounded
        self._clock = clock
        self._window_end = 0.0
        self._lines: dict[object, int] = {}
        self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is written; say in it what was left out before, or will be after."""
        if record.name == self._unbounded:
            return True
        now = self._clock()
        if now >= self._window_end:
            self._window_end = now + WINDOW_SECONDS
            self._lines.clear()
        kind = (record.name, record.levelno, getattr(record, KIND, record.msg))
        alike = self._lines.get(kind, 0)
        if alike >= MAX_LINES_ALIKE or sum(self._lines.values()) >= MAX_LINES:
            self._left_out += 1
            return False
        self._lines[kind] = alike + 1
        fields = dict(getattr(record, FIELDS, {}))
        if self._left_out:
            fields["lines_left_out_before"], self._left_out = self._left_out, 0
        if alike + 1 == MAX_LINES_ALIKE:
            fields["lines_like_this"] = f"left out for up to {WINDOW_SECONDS:g} s"
        setattr(record, FIELDS, fields)
        return True
