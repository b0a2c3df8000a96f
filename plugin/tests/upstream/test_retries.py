"""How long a retry waits."""

from datetime import UTC, datetime
from random import Random

import pytest

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.plugin.upstream.retries import backoff_seconds, retry_after_seconds

NOW = datetime(2026, 1, 1, tzinfo=UTC)


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


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("Thu, 01 Jan 2026 00:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 00:00:30 -0000", 30.0),
        ("Thu, 01 Jan 2026 01:00:30 +0100", 30.0),
        ("Wed, 31 Dec 2025 23:00:00 GMT", 0.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("soon", None),
        ("Thu, 01 Jan 2026 00:00:30 +9999", None),
        ("Thu, 01 Jan 2026 00:00:30 +99999999999999", None),
        ("Thu, 01 Jan 2026 00:00:30 -999999999999999999", None),
        ("Thu, 01 Jan 99999 00:00:00 GMT", None),
        ("9" * 400, None),
        ("9" * 64, 1e64),
        ("-1", None),
        ("²", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, NOW) == seconds
