"""Files of token buckets: deleted when they are full, and not under the hands of who opens them."""

import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.limits.token_buckets import Bucket, Empty, TokenBuckets
from tests.limits.virtual_clock import Clock

SLOW = Bucket("slow", tokens_per_second=1, burst=2)
QUICK = Bucket("quick", tokens_per_second=2, burst=2)


@pytest.fixture
def buckets(tmp_path: Path, clock: Clock) -> TokenBuckets:
    return TokenBuckets(tmp_path, clock)


def test_a_bucket_is_swept_once_it_is_full_again(clock: Clock, buckets: TokenBuckets, tmp_path: Path) -> None:
    for _ in range(2):
        assert buckets.acquire([SLOW]) is None
    assert buckets.acquire([QUICK]) is None
    clock.now += 0.5
    assert buckets.sweep() == 1
    clock.now += 1.499
    assert buckets.sweep() == 0
    assert len(list(tmp_path.iterdir())) == 1
    clock.now += 0.001
    assert buckets.sweep() == 1
    assert list(tmp_path.iterdir()) == []
    assert buckets.acquire([SLOW]) is None


def test_a_file_without_a_bucket_is_swept(buckets: TokenBuckets, tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes(b"x" * 31)
    assert buckets.sweep() == 1
    assert list(tmp_path.iterdir()) == []


def test_who_has_opened_a_file_that_is_swept_takes_the_new_one(buckets: TokenBuckets, tmp_path: Path) -> None:
    buckets.acquire([SLOW])
    [path] = tmp_path.iterdir()
    with path.open("rb") as swept, ThreadPoolExecutor(1) as other_worker:
        fcntl.flock(swept, fcntl.LOCK_EX)
        acquiring = other_worker.submit(buckets.acquire, [SLOW])
        with pytest.raises(TimeoutError):
            acquiring.result(0.03)
        path.unlink()
        fcntl.flock(swept, fcntl.LOCK_UN)
        assert acquiring.result(10) is None
    [new] = tmp_path.iterdir()
    assert new.stat().st_size == 32
    assert buckets.acquire([SLOW]) is None
    assert buckets.acquire([SLOW]) == Empty(0, 1.0)


def test_the_first_empty_bucket_is_named_and_none_loses_a_token(buckets: TokenBuckets) -> None:
    for _ in range(2):
        assert buckets.acquire([SLOW]) is None
    assert buckets.acquire([QUICK, SLOW]) == Empty(1, 1.0)
    assert buckets.acquire([SLOW, QUICK]) == Empty(0, 1.0)
    assert buckets.acquire([QUICK]) is None
    assert buckets.acquire([QUICK]) is None
    assert buckets.acquire([QUICK]) == Empty(0, 0.5)


def test_a_second_bucket_that_cannot_be_locked_costs_no_token_of_the_first(
    buckets: TokenBuckets, tmp_path: Path
) -> None:
    buckets.acquire([SLOW])
    [held] = tmp_path.iterdir()
    with held.open("rb") as file, ThreadPoolExecutor(1) as other_worker:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="another worker holds a file of it"):
            other_worker.submit(buckets.acquire, [QUICK, SLOW]).result(10)
    assert [buckets.acquire([QUICK]) for _ in range(3)] == [None, None, Empty(0, 0.5)]


def test_no_file_stays_open(buckets: TokenBuckets) -> None:
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        buckets.acquire([QUICK, SLOW])
    buckets.sweep()
    assert len(os.listdir("/dev/fd")) == before
