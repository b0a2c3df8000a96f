"""Summaries of durations, with those that a real ML Commons made of the same ones."""

import pytest

from opensearch_ml_stream.plugin.monitoring.profiles import summary


def test_one_duration_is_all_of_its_summary() -> None:
    assert summary([25.5]) == {"count": 1} | dict.fromkeys(("max", "min", "average", "p50", "p90", "p99"), 25.5)


def test_percentiles_are_interpolated_as_ml_commons_does() -> None:
    recorded = {
        "count": 2, "max": 1601.453534, "min": 312.193828, "average": 956.823681, "p50": 956.8236810000001,
        "p90": 1472.5275634, "p99": 1588.56093694,
    }  # fmt: skip
    ours = summary([1601.453534, 312.193828])
    assert list(ours) == list(recorded)
    assert ours == pytest.approx(recorded)


def test_the_order_of_durations_does_not_matter() -> None:
    expected = {"count": 100, "max": 99, "min": 0, "average": 49.5, "p50": 49.5, "p90": 89.1, "p99": 98.01}
    assert summary(list(range(100))[::-1]) == pytest.approx(expected)
