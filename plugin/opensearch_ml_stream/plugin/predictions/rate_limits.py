"""A model's `rate_limiter`: a token bucket per model, one for all workers of this sidecar.

As in ML Commons (contract 6.5): the rate is limit / unit, the burst `max(limit, 1)`. The buckets are small files that
the workers share, each two doubles (tokens, time of CLOCK_MONOTONIC) under a lock that is held for microseconds.
"""

import fcntl
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import ceil
from pathlib import Path
from time import monotonic
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest, Throttled

# Java's TimeUnit, in seconds.
UNITS = {
    "NANOSECONDS": 1e-9,
    "MICROSECONDS": 1e-6,
    "MILLISECONDS": 1e-3,
    "SECONDS": 1.0,
    "MINUTES": 60.0,
    "HOURS": 3600.0,
    "DAYS": 86400.0,
}

_BUCKET = struct.Struct("dd")


@dataclass(frozen=True, slots=True)
class RateLimit:
    """`limit` predictions in `seconds`."""

    limit: float
    seconds: float


class RateLimits:
    """The token buckets. `directory` is shared by the workers and removed with the server."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def acquire(self, model_id: str, rate_limit: RateLimit) -> None:
        """Take a token; Throttled (429, with the seconds to wait) if there is none."""
        if rate_limit.limit <= 0:
            raise Throttled("Request is throttled at model level.")
        wait = self._take(model_id, rate_limit.limit / rate_limit.seconds, max(rate_limit.limit, 1.0))
        if wait > 0:
            raise Throttled("Request is throttled at model level.", retry_after=str(ceil(wait)))

    def _take(self, model_id: str, rate: float, burst: float) -> float:
        """0 when a token was taken, else the seconds until there is one."""
        path = self._directory / sha256(model_id.encode()).hexdigest()[:32]
        bucket = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(bucket, fcntl.LOCK_EX)
            now = monotonic()
            stored = os.pread(bucket, _BUCKET.size, 0)
            tokens, then = _BUCKET.unpack(stored) if len(stored) == _BUCKET.size else (burst, now)
            tokens = min(burst, tokens + (now - then) * rate)
            taken = tokens >= 1
            os.pwrite(bucket, _BUCKET.pack(tokens - 1 if taken else tokens, now), 0)
            return 0.0 if taken else (1 - tokens) / rate
        finally:
            os.close(bucket)


def read_rate_limiter(rate_limiter: Mapping[str, Any] | None) -> RateLimit | None:
    """Read a stored `rate_limiter`, None if it does not limit; InvalidRequest names what is wrong."""
    if not rate_limiter or rate_limiter.get("limit") is None or rate_limiter.get("unit") is None:
        return None
    try:
        limit = float(rate_limiter["limit"])
    except (TypeError, ValueError):
        raise InvalidRequest("rate_limiter.limit must be a number") from None
    unit = str(rate_limiter["unit"]).upper()
    if unit not in UNITS or limit < 0:
        raise InvalidRequest(f"rate_limiter needs a limit of 0 or more and a unit of {', '.join(UNITS)}")
    return RateLimit(limit, UNITS[unit])
