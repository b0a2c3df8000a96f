"""How long a retry waits."""

from random import Random

import pytest

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.plugin.upstream.retries import backoff_seconds


def waits(policy: str, attempt: int) -> list[float]:
    config = ClientConfig(retry_backoff_millis=200, retry_backoff_policy=policy)
    return [backoff_seconds(config, attempt, Random(seed)) for seed in range(200)]


def test_the_constant_policy_always_waits_the_same() -> None:
    assert {*waits("constant", 1), *waits("constant", 9)} == {0.2}


@pytest.mark.parametrize(("attempt", "ceiling"), [(1, 0.2), (2, 0.4), (4, 1.6), (50, 20.0)])
def test_equal_jitter_waits_between_half_and_all_of_a_doubling_time(attempt: int, ceiling: float) -> None:
    seconds = waits("exponential_equal_jitter", attempt)
    assert ceiling / 2 <= min(seconds) < ceiling * 0.55
    assert ceiling * 0.95 < max(seconds) <= ceiling


@pytest.mark.parametrize(("attempt", "ceiling"), [(1, 0.2), (2, 0.4), (4, 1.6), (50, 20.0)])
def test_full_jitter_waits_between_nothing_and_all_of_a_doubling_time(attempt: int, ceiling: float) -> None:
    seconds = waits("exponential_full_jitter", attempt)
    assert 0 <= min(seconds) < ceiling * 0.1
    assert ceiling * 0.9 < max(seconds) <= ceiling
