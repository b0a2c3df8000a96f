"""Count, extremes, average and percentiles of durations, as ML Commons shows them."""

from collections.abc import Sequence

_PERCENTILES = (50, 90, 99)


def summary(durations: Sequence[float]) -> dict[str, float]:
    """Return `{"count", "max", "min", "average", "p50", "p90", "p99"}` of one duration or more, in their unit."""
    ordered = sorted(durations)
    return {
        "count": len(ordered),
        "max": ordered[-1],
        "min": ordered[0],
        "average": sum(ordered) / len(ordered),
        **{f"p{percent}": _percentile(ordered, percent) for percent in _PERCENTILES},
    }


def _percentile(ordered: Sequence[float], percent: int) -> float:
    """Interpolate between the two values beside the percentile's place (as numpy's `linear` does)."""
    place = (len(ordered) - 1) * percent / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
