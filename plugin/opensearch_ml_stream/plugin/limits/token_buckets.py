"""Token buckets in files that the workers of a server share, so that a token is handed out once among all of them.

A bucket is four doubles under a lock that is held for microseconds. A file that is missing is a full bucket, so that
one that has filled up again may be deleted, whoever is about to open it.
"""

import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import monotonic

from opensearch_ml_stream.plugin.locked_file import locked

_BUCKET = struct.Struct("dddd")  # tokens, when there were so many (CLOCK_MONOTONIC), tokens_per_second, burst


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket that holds at most `burst` tokens, at least 1, and is filled by `tokens_per_second`, more than 0."""

    key: str
    tokens_per_second: float
    burst: float


@dataclass(frozen=True, slots=True)
class Empty:
    """Which of the buckets, by its place, had no token, and in how many seconds there is one."""

    place: int
    wait: float


class TokenBuckets:
    """The buckets in `directory`, which the workers share. `clock` is one that all of them read alike."""

    def __init__(self, directory: Path, clock: Callable[[], float] = monotonic) -> None:
        self._directory = str(directory)
        self._clock = clock

    def acquire(self, buckets: Sequence[Bucket], place: int = 0) -> Empty | None:
        """Acquire a token of each bucket from `place` on, or of none; return the first that is empty.

        Callers who share buckets name them in the same order, as the locks are held together. OSError if a file
        cannot be opened, locked or written; then no token is gone.
        """
        path = self._path(buckets[place].key)
        while True:
            with locked(path) as file:
                if _is_swept(file):
                    continue
                return self._acquire_from(file, buckets, place)

    def _acquire_from(self, file: int, buckets: Sequence[Bucket], place: int) -> Empty | None:
        bucket = buckets[place]
        now = self._clock()
        tokens = _tokens(file, bucket, now)
        empty = Empty(place, (1 - tokens) / bucket.tokens_per_second) if tokens < 1 else None
        if empty is None and place + 1 < len(buckets):
            empty = self.acquire(buckets, place + 1)
        left = tokens - 1 if empty is None else tokens
        os.pwrite(file, _BUCKET.pack(left, now, bucket.tokens_per_second, bucket.burst), 0)
        return empty

    def sweep(self) -> int:
        """Delete the files of buckets that are full, and return how many; blocks for microseconds a file."""
        count = 0
        for name in os.listdir(self._directory):
            path = f"{self._directory}/{name}"
            with locked(path) as file:
                if not _is_swept(file) and _is_full(file, self._clock()):
                    os.unlink(path)
                    count += 1
        return count

    def _path(self, key: str) -> str:
        return f"{self._directory}/{sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _is_swept(file: int) -> bool:
    """Whether the file was deleted between the moments when it was opened and when it was locked."""
    return not os.fstat(file).st_nlink


def _tokens(file: int, bucket: Bucket, now: float) -> float:
    """Return the tokens that there are now.

    For the time since they were counted last they come at the lower of the rates then and now: when it was changed in
    between is not known.
    """
    stored = os.pread(file, _BUCKET.size, 0)
    if len(stored) < _BUCKET.size:
        return bucket.burst
    tokens, then, rate, burst = _BUCKET.unpack(stored)
    came = (now - then) * min(rate, bucket.tokens_per_second)
    return float(min(tokens + came, burst, bucket.burst))


def _is_full(file: int, now: float) -> bool:
    stored = os.pread(file, _BUCKET.size, 0)
    if len(stored) < _BUCKET.size:
        return True
    tokens, then, rate, burst = _BUCKET.unpack(stored)
    return bool(tokens + (now - then) * rate >= burst)
