"""The metrics of one scenario on one system: the load's report, and what the system's processes used during it."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.relays.processes import Cpus, free_port, started, tree, tree_usage, usage
from bench.relays.systems import NotStarted, Target, wait_for
from bench.runs.scenarios import Scenario
from bench.traffic.load import LoadPlan, as_json
from bench.traffic.stream_plan import StreamPlan

SAMPLE_SECONDS = 0.1
REPOSITORY = Path(__file__).parents[2]

# The providers: of streams, and of whole responses.
STREAMS, WHOLE = "bench.traffic.provider", "bench.traffic.whole_provider"

Metrics = dict[str, float]
Report = dict[str, Any]


@dataclass(slots=True)
class Watch:
    """What a process tree used during a load: CPU seconds, those of its busiest process, memory before and at most."""

    cpu_seconds: float = 0
    kernel_seconds: float = 0
    busiest: float = 0
    rss_before: int = 0
    rss_most: int = 0


@contextmanager
def provider(cpus: Cpus, folder: Path, module: str = STREAMS, arguments: Sequence[str] = ()) -> Iterator[int]:
    """The port of a running provider of that module; it gets the port, then the arguments."""
    port = free_port()
    log = folder / "provider.log"
    with started([sys.executable, "-m", module, str(port), *arguments], cpus.load, log, folder=REPOSITORY) as process:
        wait_for(f"http://127.0.0.1:{port}/stats", log, process)
        yield port


def provider_counts(port: int) -> dict[str, int]:
    """What the provider has counted since the last call (see provider.py)."""
    counts: dict[str, int] = httpx.get(f"http://127.0.0.1:{port}/stats", timeout=30).json()
    return counts


@contextmanager
def watched(root: int | None) -> Iterator[Watch]:
    """Watches the process tree during the block; the result is complete at its end."""
    watch = Watch()
    if root is None:
        yield watch
        return
    before = tree_usage(root)
    cpu_before = {pid: usage(pid).cpu_seconds for pid in tree(root)}
    watch.rss_before = watch.rss_most = before.rss_bytes
    over = threading.Event()

    def sample() -> None:
        while not over.wait(SAMPLE_SECONDS):
            watch.rss_most = max(watch.rss_most, tree_usage(root).rss_bytes)

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield watch
    finally:
        over.set()
        sampler.join()
        after = tree_usage(root)
        watch.cpu_seconds = after.cpu_seconds - before.cpu_seconds
        watch.kernel_seconds = after.kernel_seconds - before.kernel_seconds
        watch.busiest = max(usage(pid).cpu_seconds - cpu_before.get(pid, 0) for pid in tree(root))


def load_plan(target: Target, scenario: Scenario) -> LoadPlan:
    """The scenario's load for that system."""
    return LoadPlan(
        host="127.0.0.1",
        port=target.port,
        path=target.path,
        body=target.body_for(scenario.stream),
        done=target.done,
        chunks=scenario.stream.chunks,
        connections=scenario.connections,
        streams=scenario.streams,
        seconds=scenario.seconds,
        ramp=scenario.ramp,
        cancel_after=scenario.cancel_after,
        headers=target.headers,
        repeats_text=target.repeats_text,
    )


def begin_load(target: Target, scenario: Scenario) -> subprocess.Popen[str]:
    """Starts the load generator, on the CPUs of this process; `finish_load` waits for it."""
    return begin(target.load, as_json(load_plan(target, scenario)))


def begin(module: str, plan: str) -> subprocess.Popen[str]:
    """Starts a load generator, which reads its plan from standard input."""
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    assert process.stdin is not None
    process.stdin.write(plan)
    process.stdin.close()
    process.stdin = None  # communicate would close it once more
    return process


def finish_load(process: subprocess.Popen[str]) -> Report:
    """The report of a load generator, at its end (see `measure` in load.py)."""
    output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"the load generator ended with {process.returncode}")
    report: Report = json.loads(output)
    return report


def warm_up(target: Target, text: int = 30) -> None:
    """Runs a few streams of chunks of that length, unmeasured; NotStarted if they do not come whole."""
    report = finish_load(begin_load(target, Scenario("warm", StreamPlan(20, text=text), 8, streams=64)))
    if report["errors"]:
        raise NotStarted(f"port {target.port} does not relay: {report['errors']}")


def measure(target: Target, scenario: Scenario, provider_port: int) -> Metrics:
    """The scenario's metrics by name; without those of a process tree for the direct call."""
    provider_counts(provider_port)
    with watched(target.pid) as watch:
        report = finish_load(begin_load(target, scenario))
    return metrics(scenario, report, watch, provider_counts(provider_port))


def metrics(scenario: Scenario, report: Report, watch: Watch, sent: dict[str, int]) -> Metrics:
    """The metrics by name: times in milliseconds, memory in KiB a stream, CPU in seconds."""
    figures: Metrics = {
        "errors": sum(report["errors"].values()),
        "chunks": report["chunks"],
        "chunks_per_second": report["chunks"] / report["seconds"],
        "load_cpu_share": report["cpu_seconds"] / report["seconds"],
    }
    for name in ("first_ms", "added_ms"):
        figures |= {f"{name}_{share}": value for share, value in report[name].items()}
    if watch.cpu_seconds:
        figures["chunks_per_cpu_second"] = report["chunks"] / watch.cpu_seconds
        figures["chunks_per_busiest_second"] = report["chunks"] / watch.busiest
        figures["kernel_share"] = watch.kernel_seconds / watch.cpu_seconds
        figures["cpu_share"] = watch.cpu_seconds / report["seconds"]
        figures["cpu_seconds"] = watch.cpu_seconds
    if watch.rss_most:
        figures["kib_per_stream"] = (watch.rss_most - watch.rss_before) / 1024 / scenario.connections
    if scenario.cancel_after and report["cancelled"]:
        figures["chunks_after_cancel"] = (sent["chunks"] - report["chunks"]) / report["cancelled"]
        if sent["disconnected"]:  # the relay disconnected from the provider too
            figures["most_chunks_after_cancel"] = sent["most_chunks_disconnected"] - scenario.cancel_after
    return figures
