"""Rate limits: how often a model may be called (`rate_limiter`), and how often by each user (its controller).

As in ML Commons (contract 6.5) the rate is limit / unit and the burst max(limit, 1), each server on the store has its
share of the limit, and the model's limit is checked first. A call that one of two limits refuses takes no token of the
other. The workers of a server share the buckets (see `TokenBuckets`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, isfinite
from pathlib import Path
from struct import Struct
from time import monotonic
from typing import Any, NamedTuple

from opensearch_ml_stream.connectors.errors import InvalidRequest, Throttled, Unavailable
from opensearch_ml_stream.plugin.shared.table import SharedTable, table_key

_BUCKET = Struct("dddd")  # tokens, when there were so many (CLOCK_MONOTONIC), tokens_per_second, burst: 0 of a new one
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


class Bucket(NamedTuple):
    """A bucket that holds at most `burst` tokens, at least 1, and is filled by `tokens_per_second`, more than 0."""

    key: str
    tokens_per_second: float
    burst: float


class Empty(NamedTuple):
    """The position of the first bucket without a token, and the seconds until it has one."""

    place: int
    wait: float


class TokenBuckets:
    """Token buckets in a table that the workers of a server share, so that each token is used once among all of them.

    A bucket without a record is full, so the record of one that has filled up again may be replaced. All workers read
    the same `clock`; `is_shared` is whether the server has more than one.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = monotonic, *, is_shared: bool = True) -> None:
        self._table = SharedTable(path, _BUCKET, is_shared=is_shared)
        self._clock = clock

    def close(self) -> None:
        """Let go of the file."""
        self._table.close()

    def acquire(self, buckets: Sequence[Bucket]) -> Empty | None:
        """Acquire a token of each bucket, or of none; return the first that is empty.

        OSError if the table cannot be opened, locked or has no room; then no token is taken.
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
    """Return the number of tokens now.

    Tokens since the last count are added at the lower of the rates then and now, as it is not known when the rate
    changed.
    """
    tokens, then, rate, burst = record
    if not burst:
        return bucket.burst
    came = (now - then) * min(rate, bucket.tokens_per_second)
    return min(tokens + came, burst, bucket.burst)


class RateLimit(NamedTuple):
    """`limit` calls in `seconds`."""

    limit: float
    seconds: float


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of limit: ML Commons' words when it refuses a call, and the name in the metrics."""

    reason: str
    name: str


_OF_MODEL = _Kind("Request is throttled at model level.", "model_rate")
_OF_USER = _Kind(
    "Request is throttled at user level. If you think there's an issue, please contact your cluster admin.",
    "user_rate",
)


class RateLimits:
    """The limits of all models, counted in `directory`, which workers share; `servers` is how many share the store.

    `is_shared` is whether this server has more than one worker.
    """

    def __init__(
        self,
        directory: Path,
        servers: Callable[[], int] = lambda: 1,
        clock: Callable[[], float] = monotonic,
        *,
        is_shared: bool = True,
    ) -> None:
        self._directory = directory
        self._servers = servers
        self._buckets = TokenBuckets(directory / "rate-limits", clock, is_shared=is_shared)

    def close(self) -> None:
        """Let go of the file."""
        self._buckets.close()

    def acquire(
        self, model_id: str, of_model: RateLimit | None, user: str = "", of_user: RateLimit | None = None
    ) -> None:
        """Acquire a token of each limit for one call; Throttled (429, `retry_after` in seconds) if one has none.

        Unavailable if the buckets cannot be written: nothing that is limited goes on uncounted.
        """
        kinds, buckets = _buckets(model_id, of_model, user, of_user, self._servers())
        try:
            empty = self._buckets.acquire(buckets)
        except OSError as error:
            raise Unavailable(
                f"The model's rate limit cannot be counted in {self._directory} ({error.strerror}); check that its "
                "disk is not full"
            ) from error
        if empty is not None:
            kind = kinds[empty.place]
            wait = ceil(min(empty.wait, _MAX_RETRY_AFTER_SECONDS))
            raise Throttled(kind.reason, retry_after=str(wait), limit=kind.name)


@lru_cache(maxsize=1024)  # most calls are of the same few models and users
def _buckets(
    model_id: str, of_model: RateLimit | None, user: str, of_user: RateLimit | None, servers: int
) -> tuple[Sequence[_Kind], Sequence[Bucket]]:
    """Return one server's buckets and their kinds; Throttled if the server's share of a limit is zero."""
    kinds: list[_Kind] = []
    buckets: list[Bucket] = []
    if of_model is not None:
        kinds.append(_OF_MODEL)
        buckets.append(_bucket(_OF_MODEL, of_model, model_id, servers))
    if of_user is not None:
        kinds.append(_OF_USER)
        buckets.append(_bucket(_OF_USER, of_user, f"{len(user)} {user} {model_id}", servers))
    return kinds, buckets


def _bucket(kind: _Kind, limit: RateLimit, key: str, servers: int) -> Bucket:
    share = limit.limit / servers
    rate = share / limit.seconds
    if rate <= 0:
        raise Throttled(kind.reason, limit=kind.name)
    return Bucket(f"{kind.name} {key}", rate, max(share, 1.0))


def user_limiters(controller: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the stored limiters of a model's controller by user, for `read_rate_limiter`."""
    limiters = controller.get("user_rate_limiter") or {}
    if not isinstance(limiters, Mapping):
        raise InvalidRequest("user_rate_limiter of the model's controller must be an object")
    return limiters


def read_rate_limiter(rate_limiter: Any, name: str = "rate_limiter") -> RateLimit | None:
    """Read a stored limiter, None if it does not limit; InvalidRequest names it by `name` and says what is wrong."""
    if rate_limiter is not None and not isinstance(rate_limiter, Mapping):
        raise InvalidRequest(f"{name} must be an object with limit and unit")
    if not rate_limiter or rate_limiter.get("limit") is None or rate_limiter.get("unit") is None:
        return None
    try:
        limit = float(rate_limiter["limit"])
    except (TypeError, ValueError, OverflowError):
        raise InvalidRequest(f"{name}.limit must be a number") from None
    unit = str(rate_limiter["unit"]).upper()
    if unit not in UNITS or not isfinite(limit) or limit < 0:
        raise InvalidRequest(f"{name} needs a limit of 0 or more and a unit of {', '.join(UNITS)}")
    return RateLimit(limit, UNITS[unit])
