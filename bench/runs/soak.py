"""Churn for a long time: streams that end, streams that are left; does memory stay flat?"""

import statistics
import time
from dataclasses import dataclass

from bench.relays.processes import tree_usage
from bench.relays.systems import sidecar
from bench.runs.measuring import begin_load, finish_load, warm_up
from bench.runs.rounds import bench_place, say
from bench.runs.scenarios import Scenario
from bench.traffic.stream_plan import StreamPlan

TURN_SECONDS = 10.0
SETTLING_SHARE = 0.1  # of the time, before memory counts: pools and caches fill

WHOLE = Scenario("whole", StreamPlan(100, 0.01), 100, seconds=TURN_SECONDS)
LEFT = Scenario("left", StreamPlan(100, 0.01), 100, seconds=TURN_SECONDS, cancel_after=10)


@dataclass(frozen=True, slots=True)
class Soak:
    """`growth_kib` is between the means of the first and the last fifth of the samples after settling."""

    minutes: float
    streams: int
    left: int
    errors: int
    first_mib: float
    last_mib: float

    @property
    def growth_kib(self) -> float:
        return (self.last_mib - self.first_mib) * 1024

    def __str__(self) -> str:
        return (
            f"{self.minutes:.0f} minutes, {self.streams:,} whole streams, {self.left:,} left after 10 chunks, "
            f"{self.errors} failed: {self.first_mib:.1f} MiB at the start, {self.last_mib:.1f} MiB at the end "
            f"({self.growth_kib:+,.0f} KiB)"
        )


def soak(minutes: float) -> Soak:
    samples: list[float] = []
    streams = left = errors = 0
    with bench_place() as place, sidecar(place) as target:
        assert target.pid is not None
        warm_up(target)
        ends = time.monotonic() + minutes * 60
        while time.monotonic() < ends or len(samples) < 2:
            loads = [begin_load(target, scenario) for scenario in (WHOLE, LEFT)]
            for report in map(finish_load, loads):
                streams += report["streams"]
                left += report["cancelled"]
                errors += sum(report["errors"].values())
            samples.append(tree_usage(target.pid).rss_bytes / 2**20)
            say(f"{samples[-1]:.1f} MiB")
    settled = samples[int(len(samples) * SETTLING_SHARE) :]
    fifth = max(len(settled) // 5, 1)
    first, last = statistics.mean(settled[:fifth]), statistics.mean(settled[-fifth:])
    return Soak(minutes, streams, left, errors, first, last)
