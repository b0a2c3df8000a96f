"""Rate limits of models (`rate_limiter`): one token bucket per model, shared by all workers of this sidecar.

As in ML Commons (contract 6.5) the rate is limit / unit and the burst max(limit, 1). A bucket is a small file that
the workers share: two doubles (tokens, time of CLOCK_MONOTONIC) under a lock that is held for microseconds.
"""

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import ceil, isfinite
from pathlib import Path
from time import monotonic
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest, Throttled, Unavailable
from opensearch_ml_stream.plugin.locked_file import locked

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

_MAX_RETRY_AFTER_SECONDS = 365 * 86400  # a rate may be so small that the wait is infinite
_BUCKET = struct.Struct("dd")
_THROTTLED = "Request is throttled at model level."  # as ML Commons words it


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
        """Acquire a token; raise Throttled (429, `retry_after` in seconds) if there is none.

        Unavailable if the bucket's file cannot be written: nothing that is limited goes on uncounted.
        """
        tokens_per_second = rate_limit.limit / rate_limit.seconds
        if tokens_per_second <= 0:
            raise Throttled(_THROTTLED)
        try:
            wait = self._acquire_token(model_id, tokens_per_second, max(rate_limit.limit, 1.0))
        except OSError as error:
            raise Unavailable(
                f"The model's rate limit cannot be counted in {self._directory} ({error.strerror}); check that its "
                "disk is not full"
            ) from error
        if wait > 0:
            raise Throttled(_THROTTLED, retry_after=str(ceil(min(wait, _MAX_RETRY_AFTER_SECONDS))))

    def _acquire_token(self, model_id: str, tokens_per_second: float, burst: float) -> float:
        """Return 0 if a token was acquired, else the seconds until there is one."""
        path = self._directory / sha256(model_id.encode()).hexdigest()[:32]
        with locked(path) as bucket:
            now = monotonic()
            stored = os.pread(bucket, _BUCKET.size, 0)
            tokens, then = _BUCKET.unpack(stored) if len(stored) == _BUCKET.size else (burst, now)
            tokens = min(burst, tokens + (now - then) * tokens_per_second)
            acquired = tokens >= 1
            os.pwrite(bucket, _BUCKET.pack(tokens - 1 if acquired else tokens, now), 0)
            return 0.0 if acquired else (1 - tokens) / tokens_per_second


def read_rate_limiter(rate_limiter: Mapping[str, Any] | None) -> RateLimit | None:
    """Read a stored `rate_limiter`, None if it does not limit; InvalidRequest names what is wrong."""
    if not rate_limiter or rate_limiter.get("limit") is None or rate_limiter.get("unit") is None:
        return None
    try:
        limit = float(rate_limiter["limit"])
    except (TypeError, ValueError, OverflowError):
        raise InvalidRequest("rate_limiter.limit must be a number") from None
    unit = str(rate_limiter["unit"]).upper()
    if unit not in UNITS or not isfinite(limit) or limit < 0:
        raise InvalidRequest(f"rate_limiter needs a limit of 0 or more and a unit of {', '.join(UNITS)}")
    return RateLimit(limit, UNITS[unit])
