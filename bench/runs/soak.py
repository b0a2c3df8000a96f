"""A soak: whole and disconnected streams in turn for a long time, to see whether the sidecar's memory stays flat."""

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
DISCONNECTED = Scenario("disconnected", StreamPlan(100, 0.01), 100, seconds=TURN_SECONDS, cancel_after=10)


@dataclass(frozen=True, slots=True)
class Soak:
    """The counts of streams, and the mean memory in the first and the last fifth of the time after settling."""

    minutes: float
    streams: int
    disconnected: int
    errors: int
    first_mib: float
    last_mib: float

    @property
    def growth_kib(self) -> float:
        return (self.last_mib - self.first_mib) * 1024

    def __str__(self) -> str:
        return (
            f"{self.minutes:.0f} minutes, {self.streams:,} whole streams, {self.disconnected:,} left after 10 chunks, "
            f"{self.errors} failed: {self.first_mib:.1f} MiB at the start, {self.last_mib:.1f} MiB at the end "
            f"({self.growth_kib:+,.0f} KiB)"
        )


def soak(minutes: float) -> Soak:
    """Runs the loads for so many minutes, and samples the sidecar's memory after each turn."""
    samples: list[float] = []
    streams = disconnected = errors = 0
    with bench_place() as place, sidecar(place) as target:
        assert target.pid is not None
        warm_up(target)
        ends = time.monotonic() + minutes * 60
        while time.monotonic() < ends or len(samples) < 2:
            loads = [begin_load(target, scenario) for scenario in (WHOLE, DISCONNECTED)]
            for report in map(finish_load, loads):
                streams += report["streams"]
                disconnected += report["cancelled"]
                errors += sum(report["errors"].values())
            samples.append(tree_usage(target.pid).rss_bytes / 2**20)
            say(f"{samples[-1]:.1f} MiB")
    settled = samples[int(len(samples) * SETTLING_SHARE) :]
    fifth = max(len(settled) // 5, 1)
    first, last = statistics.mean(settled[:fifth]), statistics.mean(settled[-fifth:])
    return Soak(minutes, streams, disconnected, errors, first, last)
