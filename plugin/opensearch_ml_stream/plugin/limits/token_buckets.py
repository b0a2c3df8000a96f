"""Token buckets in a table that the workers of a server share, so that a token is handed out once among all of them.

A bucket that has no record is full, so that one that has filled up again may make way for others.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from struct import Struct
from time import monotonic
from typing import NamedTuple

from opensearch_ml_stream.plugin.shared.table import SharedTable, table_key

_BUCKET = Struct("dddd")  # tokens, when there were so many (CLOCK_MONOTONIC), tokens_per_second, burst: 0 of a new one


class Bucket(NamedTuple):
    """A bucket that holds at most `burst` tokens, at least 1, and is filled by `tokens_per_second`, more than 0."""

    key: str
    tokens_per_second: float
    burst: float


class Empty(NamedTuple):
    """Which of the buckets, by its place, had no token, and in how many seconds there is one."""

    place: int
    wait: float


class TokenBuckets:
    """The buckets in a file that the workers share. `clock` is one that all of them read alike.

    `is_shared` is whether the server has more than one.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = monotonic, *, is_shared: bool = True) -> None:
        self._table = SharedTable(path, _BUCKET, is_shared=is_shared)
        self._clock = clock

    def close(self) -> None:
        """Let go of the file."""
        self._table.close()

    def acquire(self, buckets: Sequence[Bucket]) -> Empty | None:
        """Acquire a token of each bucket, or of none; return the first that is empty.

        OSError if the table cannot be opened, locked or has no room; then no token is gone.
        """
        table = self._table
        with table:
            now = self._clock()
            places = table.places([table_key(bucket.key) for bucket in buckets], self._is_full)
            tokens = [_tokens(table.read(place), bucket, now) for place, bucket in zip(places, buckets, strict=True)]
            empty = None if min(tokens) >= 1 else next(number for number, left in enumerate(tokens) if left < 1)
            taken = 1 if empty is None else 0
            for place, (_, rate, burst), left in zip(places, buckets, tokens, strict=True):
                table.write(place, left - taken, now, rate, burst)
        return None if empty is None else Empty(empty, (1 - tokens[empty]) / buckets[empty].tokens_per_second)

    def _is_full(self, record: tuple[float, ...]) -> bool:
        tokens, then, rate, burst = record
        return tokens + (self._clock() - then) * rate >= burst


def _tokens(record: tuple[float, ...], bucket: Bucket, now: float) -> float:
    """Return the tokens that there are now.

    For the time since they were counted last they come at the lower of the rates then and now: when it was changed in
    between is not known.
    """
    tokens, then, rate, burst = record
    if not burst:
        return bucket.burst
    came = (now - then) * min(rate, bucket.tokens_per_second)
    return min(tokens + came, burst, bucket.burst)
