"""A flood of lines: the first are written, the rest counted."""

import logging
from collections.abc import Iterable

from opensearch_ml_stream.plugin.logs.configuration import (
    FIELDS,
    KIND,
    MAX_LINES,
    MAX_LINES_ALIKE,
    WINDOW_SECONDS,
    FloodFilter,
)


class Log:
    """A filter over a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self._filter = FloodFilter("access", lambda: self.now)

    def passes(self, name: str = "x", kind: object = None) -> dict[str, object] | None:
        """The fields of a line that is written, None for one that is left out."""
        record = logging.LogRecord(name, logging.WARNING, "", 0, "a message", (), None)
        if kind is not None:
            setattr(record, KIND, kind)
        if not self._filter.filter(record):
            return None
        fields: dict[str, object] = getattr(record, FIELDS)
        return fields


def written(lines: Iterable[object]) -> int:
    return sum(line is not None for line in lines)


def test_lines_alike_are_left_out_after_the_first_and_the_last_one_says_so() -> None:
    log = Log()
    lines = [log.passes() for _ in range(1000)]
    assert written(lines) == MAX_LINES_ALIKE
    assert lines[MAX_LINES_ALIKE - 1] == {"lines_like_this": "left out for up to 60 s"}
    assert lines[0] == {}


def test_the_next_window_begins_with_how_many_were_left_out() -> None:
    log = Log()
    for _ in range(MAX_LINES_ALIKE + 7):
        log.passes()
    log.now += WINDOW_SECONDS
    assert log.passes() == {"lines_left_out_before": 7}
    assert log.passes() == {}


def test_one_kind_does_not_silence_another() -> None:
    log = Log()
    for _ in range(1000):
        log.passes(kind="one")
    assert log.passes(kind="another") is not None


def test_all_kinds_together_are_bounded() -> None:
    log = Log()
    assert written(log.passes(kind=number) for number in range(10_000)) == MAX_LINES


def test_a_log_of_which_every_line_is_wanted_is_not_filtered() -> None:
    flood_filter = FloodFilter("access", lambda: 0.0)
    records = [logging.LogRecord("access", logging.INFO, "", 0, "request", (), None) for _ in range(1000)]
    assert all(flood_filter.filter(record) for record in records)
