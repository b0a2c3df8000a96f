"""What the front door costs beside nginx: small searches, and large bodies in both directions."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from bench.relays.processes import free_port, started, tree_usage
from bench.relays.systems import Place, nginx_config, sidecar_process, wait_for
from bench.runs.measuring import REPOSITORY, Metrics
from bench.runs.rounds import bench_place, medians, say
from bench.traffic.search_cluster import LARGE_BYTES

SECONDS = 4.0

Rows = list[tuple[str, Metrics]]


def front_door(rounds: int) -> Rows:
    """Requests a CPU-second of small searches, and megabytes a CPU-second of large bodies up and down."""
    runs_of: dict[str, list[Metrics]] = {}
    with bench_place() as place, _cluster(place) as cluster:
        for number in range(rounds):
            for name, relay in (("sidecar", _sidecar), ("nginx", _nginx)):
                say(f"round {number + 1} of {rounds}: front door, {name}")
                with relay(replace(place, provider=cluster)) as (port, pid):
                    runs_of.setdefault(name, []).append(_measure_all(place, port, pid))
    return [(name, medians(runs)) for name, runs in runs_of.items()]


def _measure_all(place: Place, port: int, pid: int) -> Metrics:
    _load(place, port, "searches", 0.5)
    figures: Metrics = {}
    for what, unit in (("searches", 1.0), ("upload", LARGE_BYTES / 1e6), ("download", LARGE_BYTES / 1e6)):
        before = tree_usage(pid).cpu_seconds
        done = _load(place, port, what, SECONDS)
        figures[what] = done * unit / (tree_usage(pid).cpu_seconds - before)
    return figures


def _load(place: Place, port: int, what: str, seconds: float) -> int:
    command = [sys.executable, "-m", "bench.traffic.search_load", str(port), what, str(seconds)]
    cpus = ",".join(map(str, sorted(place.cpus.load)))
    command = ["taskset", "-c", cpus, *command]
    return int(subprocess.run(command, capture_output=True, text=True, check=True, cwd=REPOSITORY).stdout)


@contextmanager
def _cluster(place: Place) -> Iterator[int]:
    port, log = free_port(), place.folder / "cluster.log"
    command = [sys.executable, "-m", "bench.traffic.search_cluster", str(port)]
    with started(command, place.cpus.load, log, folder=REPOSITORY) as process:
        wait_for(f"http://127.0.0.1:{port}/", log, process)
        yield port


@contextmanager
def _sidecar(place: Place) -> Iterator[tuple[int, int]]:
    port = free_port()
    arguments = ("--store", f"http://127.0.0.1:{place.provider}", "--pass-through", "--insecure-no-auth")
    with sidecar_process(place, place.cpus.relay, port, arguments=arguments) as process:
        wait_for(f"http://127.0.0.1:{port}/_health/ready", place.folder / "sidecar.log", process)
        yield port, process.pid


@contextmanager
def _nginx(place: Place) -> Iterator[tuple[int, int]]:
    """nginx with one worker that passes bodies on as they come."""
    port = free_port()
    config = place.folder / "front-door.conf"
    unbuffered = "proxy_buffering off; proxy_request_buffering off; client_max_body_size 0;"
    config.write_text(nginx_config(place, port).replace("proxy_buffering off;", unbuffered))
    command = [shutil.which("nginx") or "nginx", "-e", str(place.folder / "nginx.log"), "-c", str(config)]
    with started(command, place.cpus.relay, place.folder / "nginx.log") as process:
        wait_for(f"http://127.0.0.1:{port}/", place.folder / "nginx.log", process)
        yield port, process.pid
