"""Token buckets in virtual time: several at once, and more of them than there is room for."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.limits.rate_limits import Bucket, Empty, TokenBuckets
from opensearch_ml_stream.plugin.shared import table
from tests.limits.virtual_clock import Clock

SLOW = Bucket("slow", tokens_per_second=1, burst=2)
QUICK = Bucket("quick", tokens_per_second=2, burst=2)


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
