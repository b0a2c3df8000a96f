"""What streams cost whose provider is behind TLS, beside the same streams without, here and by nginx."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.relays import systems
from bench.relays.processes import free_port
from bench.relays.systems import Place, System
from bench.runs import scenarios
from bench.runs.measuring import Metrics, measure, warm_up
from bench.runs.rounds import bench_place, medians, missing, say
from bench.traffic.certificate import write_certificate
from bench.traffic.stream_plan import StreamPlan

Rows = list[tuple[str, Metrics]]

# Each group has a system of its own: memory that others have freed would hide what these streams take.
_PACED = replace(scenarios.PACED, stream=StreamPlan(100, scenarios.TOKEN_SECONDS))
_GROUPS = ((scenarios.OPEN,), (replace(scenarios.BULK, seconds=4), scenarios.SHORT, _PACED))
_SYSTEMS: dict[str, System] = {"sidecar": systems.sidecar, "nginx": systems.nginx}


def tls(rounds: int) -> Rows:
    """Microseconds of CPU a chunk: paced, in bulk, in streams of 12; memory of 2,000 open streams and 64 in bulk."""
    runs_of: dict[str, list[Metrics]] = {}
    with _place() as (plain, encrypted):
        for number in range(rounds):
            for name, start in _SYSTEMS.items():
                if reason := missing(name):
                    say(reason)
                    continue
                for place, how in ((encrypted, "TLS"), (plain, "plain")):
                    say(f"round {number + 1} of {rounds}: {name}, {how}")
                    figures = _measure(start, place, plain.provider)
                    runs_of.setdefault(f"{name}, {how}", []).append(figures)
    return _compared({name: medians(runs) for name, runs in runs_of.items()})


def _measure(start: System, place: Place, stats: int) -> Metrics:
    figures: Metrics = {"errors": 0}
    for group in _GROUPS:
        with start(place) as target:
            warm_up(target)
            for scenario in group:
                found = measure(target, scenario, stats)
                figures["errors"] += found["errors"]
                figures[f"{scenario.name}_us"] = found["cpu_seconds"] * 1e6 / found["chunks"]
                figures[f"{scenario.name}_kib"] = found["kib_per_stream"]
    return figures


def _compared(rows: dict[str, Metrics]) -> Rows:
    """The rows; those of this sidecar with how many times nginx's chunks a CPU-second they are."""
    for how in ("TLS", "plain"):
        own, nginx = rows[f"sidecar, {how}"], rows.get(f"nginx, {how}")
        for name in ("paced", "bulk", "short") if nginx else ():
            own[f"{name}_of_nginx"] = (nginx or own)[f"{name}_us"] / own[f"{name}_us"]
    return list(rows.items())


@contextmanager
def _place() -> Iterator[tuple[Place, Place]]:
    """A place whose provider speaks HTTP, and one whose provider, the same process, speaks TLS."""
    port = free_port()
    with TemporaryDirectory(prefix="bench-tls-") as folder:
        certificate, key = write_certificate(Path(folder))
        with bench_place(arguments=(str(port), str(certificate), str(key))) as plain:
            yield plain, replace(plain, provider=port, authority=certificate)
