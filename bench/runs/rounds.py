"""Interleaved rounds: in each one every system starts afresh and runs every scenario, so that a disturbance of the
machine hits all alike. What counts is the median of the rounds."""

import os
import shutil
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.relays import peers, systems
from bench.relays.processes import allow_many_files, split_cpus
from bench.relays.systems import NotStarted, Place, System
from bench.runs import measuring
from bench.runs.measuring import Metrics
from bench.runs.scenarios import Scenario

SYSTEMS: Mapping[str, System] = {
    "direct": systems.direct,
    "sidecar": systems.sidecar,
    "nginx": systems.nginx,
    "mlserver": peers.mlserver,
    "litellm": peers.litellm,
}

Results = dict[str, dict[str, Metrics]]  # by system, by scenario


def missing(name: str) -> str:
    """What to do to have this system measured; empty where it is there."""
    if name == "nginx" and shutil.which("nginx") is None:
        return "nginx is left out: install it from the system's packages (Debian: nginx-light)"
    if name in peers.PACKAGES and not peers.command_of(name).exists():
        return f"{name} is left out: `python -m bench peers` installs it"
    return ""


@contextmanager
def bench_place() -> Iterator[Place]:
    """A provider, the CPUs dealt out, a folder; this process itself moves to the load's CPUs."""
    allow_many_files()
    cpus = split_cpus()
    os.sched_setaffinity(0, cpus.load)
    try:
        with tempfile.TemporaryDirectory(prefix="bench-") as name, measuring.provider(cpus, Path(name)) as port:
            yield Place(port, cpus, Path(name))
    finally:
        os.sched_setaffinity(0, cpus.relay | cpus.load)


def say(line: str) -> None:
    sys.stderr.write(line + "\n")


def run_rounds(names: Sequence[str], scenarios: Sequence[Scenario], rounds: int) -> Results:
    """The medians. A system that cannot be had is left out, and said so."""
    found: dict[str, dict[str, list[Metrics]]] = {}
    present = []
    for name in names:
        reason = missing(name)
        if reason:
            say(reason)
        else:
            present.append(name)
            found[name] = defaultdict(list)
    with bench_place() as place:
        for number in range(rounds):
            for name in present:
                say(f"round {number + 1} of {rounds}: {name}")
                for scenario, metrics in _run(name, place, scenarios):
                    found[name][scenario].append(metrics)
    return {name: {key: medians(runs) for key, runs in by.items()} for name, by in found.items() if by}


def _run(name: str, place: Place, scenarios: Sequence[Scenario]) -> list[tuple[str, Metrics]]:
    """Every scenario on the system, started afresh; nothing if it does not come up, which is said."""
    try:
        with SYSTEMS[name](place) as target:
            measuring.warm_up(target)
            return [(scenario.name, measuring.measure(target, scenario, place.provider)) for scenario in scenarios]
    except NotStarted as error:
        say(f"{name} is left out of this round: {error}")
        return []


def medians(runs: Sequence[Metrics]) -> Metrics:
    """Metric by metric; one that only some runs have is the median of those."""
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: statistics.median([run[name] for run in runs if name in run]) for name in names}
