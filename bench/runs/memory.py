"""Memory: of a server that has served nothing, and what each of 2,000 open streams adds to it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.relays.processes import free_port, tree, usage
from bench.relays.systems import Place, nginx, sidecar_of, sidecar_process, wait_for
from bench.runs.measuring import Metrics, measure, warm_up
from bench.runs.rounds import bench_place, medians, missing, say
from bench.runs.scenarios import OPEN

MIB = 2**20
REST_SECONDS = 2.0  # after the first response, for what a start leaves to be done
WORKERS = 2

Rows = list[tuple[str, Metrics]]


def memory(rounds: int) -> Rows:
    """Memory at rest, in MiB, and KiB for each of 2,000 streams (of one worker), beside nginx with one worker."""
    runs_of: dict[str, list[Metrics]] = {}
    with bench_place() as place:
        for number in range(rounds):
            for name, run in _RUNS.items():
                if reason := missing(name):
                    say(reason)
                    continue
                say(f"round {number + 1} of {rounds}: {name}")
                runs_of.setdefault(name, []).append(run(place))
    return [(name, medians(runs)) for name, runs in runs_of.items()]


def _sidecar(place: Place) -> Metrics:
    with _resting_sidecar(place, 1) as pid:
        figures = _at_rest(pid)
    with sidecar_of(place, place.cpus.relay) as target:
        warm_up(target)
        return {**measure(target, OPEN, place.provider), **figures}


def _workers(place: Place) -> Metrics:
    with _resting_sidecar(place, WORKERS) as pid:
        return _at_rest(pid)


def _nginx(place: Place) -> Metrics:
    with nginx(place) as target:
        assert target.pid is not None
        time.sleep(REST_SECONDS)
        figures = _at_rest(target.pid)
        warm_up(target)
        return {**measure(target, OPEN, place.provider), **figures}


_RUNS: dict[str, Callable[[Place], Metrics]] = {
    "sidecar": _sidecar,
    f"sidecar, {WORKERS} workers": _workers,
    "nginx": _nginx,
}


@contextmanager
def _resting_sidecar(place: Place, workers: int) -> Iterator[int]:
    """A sidecar's first process, once its workers have served nothing for a while."""
    port = free_port()
    with sidecar_process(place, place.cpus.relay, port, workers) as process:
        wait_for(f"http://127.0.0.1:{port}/_health/ready", place.folder / "sidecar.log", process)
        time.sleep(REST_SECONDS)
        yield process.pid


def _at_rest(root: int) -> Metrics:
    """The resident memory of the largest worker, and that of all processes with each page counted once, in MiB."""
    processes = tree(root)
    return {
        "worker_mib": max(usage(pid).rss_bytes for pid in processes[1:]) / MIB,
        "server_mib": sum(map(_proportional_bytes, processes)) / MIB,
    }


def _proportional_bytes(pid: int) -> int:
    """The process's share of its memory: a page that several processes have counts in parts (PSS)."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "Pss":
            return int(rest.split()[0]) * 1024
    return 0
