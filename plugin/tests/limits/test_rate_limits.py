"""Token buckets in virtual time; two RateLimits on one folder are two workers of a server."""

import fcntl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, Throttled, Unavailable
from opensearch_ml_stream.plugin.limits.rate_limits import (
    UNITS,
    Bucket,
    Empty,
    RateLimit,
    RateLimits,
    TokenBuckets,
    read_rate_limiter,
    user_limiters,
)
from opensearch_ml_stream.plugin.shared import table
from tests.limits.virtual_clock import Clock

BY_MODEL = "Request is throttled at model level."
SLOW = Bucket("slow", tokens_per_second=1, burst=2)
QUICK = Bucket("quick", tokens_per_second=2, burst=2)


@pytest.fixture
def limits(tmp_path: Path, clock: Clock) -> RateLimits:
    return RateLimits(tmp_path, clock=clock)


def throttled(limits: RateLimits, rate_limit: RateLimit, model_id: str = "m") -> str | None:
    """The Retry-After of a refused prediction."""
    with pytest.raises(Throttled) as raised:
        limits.acquire(model_id, rate_limit)
    assert (raised.value.reason, raised.value.limit) == (BY_MODEL, "model_rate")
    assert raised.value.status == 429
    return raised.value.retry_after


def test_a_new_bucket_allows_a_burst_of_the_limit(clock: Clock, limits: RateLimits) -> None:
    three_a_minute = RateLimit(3, 60)
    for _ in range(3):
        limits.acquire("m", three_a_minute)
    assert throttled(limits, three_a_minute) == "20"


def test_a_token_comes_back_exactly_after_its_share_of_the_unit(clock: Clock, limits: RateLimits) -> None:
    two_in_eight_seconds = RateLimit(2, 8)
    limits.acquire("m", two_in_eight_seconds)
    limits.acquire("m", two_in_eight_seconds)
    clock.now += 3.75
    assert throttled(limits, two_in_eight_seconds) == "1"
    clock.now += 0.25
    limits.acquire("m", two_in_eight_seconds)
    assert throttled(limits, two_in_eight_seconds) == "4"


def test_a_refused_prediction_costs_no_token(clock: Clock, limits: RateLimits) -> None:
    one_in_four_seconds = RateLimit(1, 4)
    limits.acquire("m", one_in_four_seconds)
    for seconds in ("4", "3", "2", "1"):
        assert throttled(limits, one_in_four_seconds) == seconds
        clock.now += 1
    limits.acquire("m", one_in_four_seconds)


def test_retry_after_is_rounded_up_to_a_second(clock: Clock, limits: RateLimits) -> None:
    one_in_four_seconds = RateLimit(1, 4)
    limits.acquire("m", one_in_four_seconds)
    clock.now += 0.75
    assert throttled(limits, one_in_four_seconds) == "4"
    clock.now += 0.25
    assert throttled(limits, one_in_four_seconds) == "3"


def test_a_long_pause_fills_the_bucket_up_to_the_burst_only(clock: Clock, limits: RateLimits) -> None:
    two_a_second = RateLimit(2, 1)
    limits.acquire("m", two_a_second)
    clock.now += 3600
    limits.acquire("m", two_a_second)
    limits.acquire("m", two_a_second)
    assert throttled(limits, two_a_second) == "1"


def test_a_limit_below_one_still_allows_one_prediction_at_a_time(clock: Clock, limits: RateLimits) -> None:
    one_in_two_minutes = RateLimit(0.5, 60)
    limits.acquire("m", one_in_two_minutes)
    assert throttled(limits, one_in_two_minutes) == "120"
    clock.now += 120
    limits.acquire("m", one_in_two_minutes)
    assert throttled(limits, one_in_two_minutes) == "120"


def test_part_of_a_limit_above_one_is_kept_as_part_of_a_token(clock: Clock, limits: RateLimits) -> None:
    one_and_a_half = RateLimit(1.5, 1.5)
    limits.acquire("m", one_and_a_half)
    assert throttled(limits, one_and_a_half) == "1"
    clock.now += 0.5
    limits.acquire("m", one_and_a_half)


def test_a_limit_of_zero_allows_nothing_and_promises_nothing(limits: RateLimits, tmp_path: Path) -> None:
    assert throttled(limits, RateLimit(0, 1)) is None
    assert list(tmp_path.iterdir()) == []


def test_workers_share_the_buckets_of_their_folder(clock: Clock, tmp_path: Path) -> None:
    one, other = RateLimits(tmp_path, clock=clock), RateLimits(tmp_path, clock=clock)
    three_an_hour = RateLimit(3, 3600)
    one.acquire("m", three_an_hour)
    other.acquire("m", three_an_hour)
    one.acquire("m", three_an_hour)
    assert throttled(other, three_an_hour) == throttled(one, three_an_hour) == "1200"


def test_each_model_has_a_bucket_of_its_own_whatever_its_id_holds(limits: RateLimits) -> None:
    one_an_hour = RateLimit(1, 3600)
    for model_id in ("m", "M", "../m", "é" * 300, "\udc80"):
        limits.acquire(model_id, one_an_hour)
        throttled(limits, one_an_hour, model_id)


@pytest.mark.usefixtures("patient_locks")
def test_a_token_is_acquired_by_one_worker_at_a_time(limits: RateLimits, tmp_path: Path) -> None:
    two_an_hour = RateLimit(2, 3600)
    limits.acquire("m", two_an_hour)
    [path] = tmp_path.iterdir()
    with path.open("rb") as bucket, ThreadPoolExecutor(1) as other_worker:
        fcntl.flock(bucket, fcntl.LOCK_SH)
        acquiring = other_worker.submit(limits.acquire, "m", two_an_hour)
        with pytest.raises(TimeoutError):
            acquiring.result(0.05)
        fcntl.flock(bucket, fcntl.LOCK_UN)
        acquiring.result(10)
    assert throttled(limits, two_an_hour) == "1800"


def test_the_smallest_limits_there_are_throttle_and_name_a_time_that_a_client_can_read(tmp_path: Path) -> None:
    limits = RateLimits(tmp_path)
    assert throttled(limits, RateLimit(5e-324, 86400)) is None
    limits.acquire("m", RateLimit(1e-300, 86400))
    assert throttled(limits, RateLimit(1e-300, 86400)) == "31536000"


def test_a_limit_that_cannot_be_counted_lets_nothing_through(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable, match=r"cannot be counted in .*file \(Not a directory\); check that its"):
        RateLimits(tmp_path / "file").acquire("m", RateLimit(1, 1))


def test_a_changed_limit_is_in_force_for_the_tokens_that_are_left(limits: RateLimits) -> None:
    limits.acquire("m", RateLimit(10, 1))
    limits.acquire("m", RateLimit(2, 1))
    limits.acquire("m", RateLimit(2, 1))
    assert throttled(limits, RateLimit(2, 1)) == "1"


def test_a_raised_limit_is_not_paid_out_for_the_time_before(clock: Clock, limits: RateLimits) -> None:
    limits.acquire("m", RateLimit(1, 100))
    clock.now += 50
    assert throttled(limits, RateLimit(100, 100)) == "1"  # half a token, where the new rate would have given fifty
    clock.now += 0.5
    limits.acquire("m", RateLimit(100, 100))
    assert throttled(limits, RateLimit(100, 100)) == "1"


def test_every_server_has_its_part_of_the_limit_and_a_burst_of_one_at_least(clock: Clock, tmp_path: Path) -> None:
    servers = 4
    limits = RateLimits(tmp_path, lambda: servers, clock)
    for _ in range(2):
        limits.acquire("m", RateLimit(8, 40))
    assert throttled(limits, RateLimit(8, 40)) == "20"
    limits.acquire("n", RateLimit(2, 40))
    assert throttled(limits, RateLimit(2, 40), "n") == "80"
    servers = 2
    assert throttled(limits, RateLimit(2, 40), "n") == "40"


@pytest.mark.parametrize(
    "document",
    [None, {}, {"limit": "3"}, {"unit": "SECONDS"}, {"limit": None, "unit": "DAYS"}, {"limit": 1, "unit": None}],
)
def test_a_document_without_limit_or_unit_does_not_limit(document: dict[str, Any] | None) -> None:
    assert read_rate_limiter(document) is None


@pytest.mark.parametrize("document", ["1/s", [1], 3])
def test_a_limiter_that_is_no_object_is_named(document: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^user_rate_limiter\.ann must be an object with limit and unit$"):
        read_rate_limiter(document, "user_rate_limiter.ann")
    with pytest.raises(InvalidRequest, match=r"^user_rate_limiter of the model's controller must be an object$"):
        user_limiters({"user_rate_limiter": document})


def test_a_controller_without_users_limits_none() -> None:
    assert user_limiters({}) == user_limiters({"user_rate_limiter": None}) == {}


@pytest.mark.parametrize(
    ("limit", "unit", "expected"),
    [
        ("3", "MINUTES", RateLimit(3.0, 60.0)),
        ("0.5", "hours", RateLimit(0.5, 3600.0)),
        (7, "Days", RateLimit(7.0, 86400.0)),
        ("0", "SECONDS", RateLimit(0.0, 1.0)),
        (2.5, "MILLISECONDS", RateLimit(2.5, 0.001)),
    ],
)
def test_a_limit_may_be_a_string_or_a_number_and_its_unit_of_either_case(
    limit: str | float, unit: str, expected: RateLimit
) -> None:
    rate_limit = read_rate_limiter({"limit": limit, "unit": unit})
    assert rate_limit == expected
    assert hash(rate_limit) == hash(expected)


def test_the_units_are_those_of_java() -> None:
    seconds = [1e-9, 1e-6, 1e-3, 1, 60, 3600, 86400]
    names = ["NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"]
    assert list(UNITS.items()) == list(zip(names, seconds, strict=True))


@pytest.mark.parametrize("limit", ["many", "", [], {"a": 1}, 10**400])
def test_a_limit_that_is_no_number_is_named(limit: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^rate_limiter\.limit must be a number$"):
        read_rate_limiter({"limit": limit, "unit": "SECONDS"})


@pytest.mark.parametrize(
    ("limit", "unit"),
    [
        (-1, "SECONDS"),
        ("-0.001", "DAYS"),
        ("nan", "SECONDS"),
        ("inf", "DAYS"),
        ("1e400", "DAYS"),
        (1, "WEEKS"),
        (1, 60),
    ],
)
def test_a_negative_or_endless_limit_and_a_unit_that_java_lacks_are_refused(limit: Any, unit: Any) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read_rate_limiter({"limit": limit, "unit": unit})
    assert raised.value.reason == (
        "rate_limiter needs a limit of 0 or more and a unit of NANOSECONDS, MICROSECONDS, MILLISECONDS, SECONDS, "
        "MINUTES, HOURS, DAYS"
    )


@pytest.fixture
def buckets(tmp_path: Path, clock: Clock) -> Iterator[TokenBuckets]:
    with closing(TokenBuckets(tmp_path / "rate-limits", clock)) as buckets:
        yield buckets


def test_the_first_empty_bucket_is_named_and_none_loses_a_token(buckets: TokenBuckets) -> None:
    for _ in range(2):
        assert buckets.acquire([SLOW]) is None
    assert buckets.acquire([QUICK, SLOW]) == Empty(1, 1.0)
    assert buckets.acquire([SLOW, QUICK]) == Empty(0, 1.0)
    assert buckets.acquire([QUICK]) is None
    assert buckets.acquire([QUICK]) is None
    assert buckets.acquire([QUICK]) == Empty(0, 0.5)


def test_a_bucket_that_is_full_again_makes_way_for_others_and_no_other_does(
    clock: Clock, buckets: TokenBuckets, tmp_path: Path
) -> None:
    def take(names: range) -> None:
        for name in names:
            assert buckets.acquire([Bucket(str(name), 1, 2)]) is None

    def size() -> int:
        return (tmp_path / "rate-limits").stat().st_size

    take(range(4000))
    grown = size()
    clock.now += 0.99
    take(range(4000))
    assert all(buckets.acquire([Bucket(str(name), 1, 2)]) for name in range(4000))
    clock.now += 3
    take(range(4000, 8000))
    assert size() == grown


def test_a_second_bucket_without_room_costs_no_token_of_the_first(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "FIRST_LEVEL", 9)
    monkeypatch.setattr(table, "MAX_LEVELS", 1)
    with closing(TokenBuckets(tmp_path / "rate-limits", clock)) as buckets:
        for number in range(7):
            assert buckets.acquire([Bucket(str(number), 1, 2)]) is None
        assert buckets.acquire([QUICK]) is None
        with pytest.raises(OSError, match="its table is full"):
            buckets.acquire([QUICK, SLOW])
        assert [buckets.acquire([QUICK]) for _ in range(2)] == [None, Empty(0, 0.5)]
        clock.now += 1
        assert buckets.acquire([QUICK, SLOW]) is None
