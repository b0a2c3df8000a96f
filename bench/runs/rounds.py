"""Interleaved rounds: each starts every system afresh and runs every scenario on it; the result is their median.

So a disturbance of the machine hits all systems alike.
"""

import os
import shutil
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.relays import ml_commons, peers, routers, runtime_systems, systems
from bench.relays.processes import allow_many_files, split_cpus
from bench.relays.systems import NotStarted, Place, System, Target
from bench.runs import measuring
from bench.runs.measuring import Metrics
from bench.runs.scenarios import Scenario

SYSTEMS: Mapping[str, System] = {
    "direct": systems.direct,
    "sidecar": systems.sidecar,
    "nginx": systems.nginx,
    "vllm-router": routers.vllm_router,
    "smg": routers.smg,
    "tensorzero": routers.tensorzero,
    "mlserver": runtime_systems.mlserver,
    "litellm": peers.litellm,
    "portkey": peers.portkey,
}

Results = dict[str, dict[str, Metrics]]  # by system, by scenario
Measure = Callable[[Target, Place], list[tuple[str, Metrics]]]


def missing(name: str) -> str:
    """What to install to have this system measured; empty if it is installed."""
    if name == "nginx" and shutil.which("nginx") is None:
        return "nginx is left out: install it from the system's packages (Debian: nginx-light)"
    if name == "ml-commons" and not ml_commons.is_named():
        return "ml-commons is left out: ML_COMMONS_PLUGIN names its plugin (see scripts/opensearch.sh)"
    if name in (*peers.PACKAGES, *peers.NPM_PACKAGES) and not peers.command_of(name).exists():
        return f"{name} is left out: `python -m bench peers` installs it"
    return ""


@contextmanager
def bench_place(provider: str = measuring.STREAMS, arguments: Sequence[str] = ()) -> Iterator[Place]:
    """A running provider of that module, CPUs divided, a temporary folder; this process moves to the load's CPUs."""
    allow_many_files()
    cpus = split_cpus()
    os.sched_setaffinity(0, cpus.load)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="bench-") as name,
            measuring.provider(cpus, Path(name), provider, arguments) as port,
        ):
            yield Place(port, cpus, Path(name))
    finally:
        os.sched_setaffinity(0, cpus.relay | cpus.load)


def say(line: str) -> None:
    """Writes a line of progress to stderr."""
    sys.stderr.write(line + "\n")


def run_rounds(names: Sequence[str], scenarios: Sequence[Scenario], rounds: int) -> Results:
    """The median of every metric over the rounds, by system and scenario."""

    def measure(target: Target, place: Place) -> list[tuple[str, Metrics]]:
        measuring.warm_up(target)
        return [(scenario.name, measuring.measure(target, scenario, place.provider)) for scenario in scenarios]

    return interleave({name: SYSTEMS[name] for name in names}, rounds, measure, measuring.STREAMS)


def interleave(chosen: Mapping[str, System], rounds: int, measure: Measure, provider: str) -> Results:
    """The median of every metric over the rounds, by system and by the names that `measure` gives.

    Systems that are not installed are skipped with a line on stderr.
    """
    runs_of: dict[str, dict[str, list[Metrics]]] = {}
    present = []
    for name in chosen:
        reason = missing(name)
        if reason:
            say(reason)
        else:
            present.append(name)
            runs_of[name] = defaultdict(list)
    with bench_place(provider) as place:
        for number in range(rounds):
            for name in present:
                say(f"round {number + 1} of {rounds}: {name}")
                for scenario, metrics in _run(name, chosen[name], place, measure):
                    runs_of[name][scenario].append(metrics)
    return {name: {key: medians(runs) for key, runs in by.items()} for name, by in runs_of.items() if by}


def _run(name: str, start: System, place: Place, measure: Measure) -> list[tuple[str, Metrics]]:
    """All measurements of the system, started afresh; nothing, and a line on stderr, if it does not start."""
    try:
        with start(place) as target:
            return measure(target, place)
    except NotStarted as error:
        say(f"{name} is left out of this round: {error}")
        return []


def medians(runs: Sequence[Metrics]) -> Metrics:
    """The median of each metric, over the runs that have it."""
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: statistics.median([run[name] for run in runs if name in run]) for name in names}
