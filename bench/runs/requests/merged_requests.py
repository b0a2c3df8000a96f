"""What merging embedding requests into fewer calls of the provider brings: CPU, calls, time."""

from contextlib import AbstractContextManager
from functools import partial

import httpx

from bench.relays.systems import Place, System, Target, sidecar_of
from bench.runs.measuring import WHOLE, Metrics, watched
from bench.runs.requests.whole_requests import load
from bench.runs.rounds import interleave
from bench.traffic.whole_bodies import EMBEDDING

CONNECTIONS = 64
SECONDS = 3.0
WARM_UP_SECONDS = 0.5

# The settings that are compared, by the names of their rows.
SETTINGS: dict[str, dict[str, int] | None] = {
    "a call each": None,
    "8 documents, 5 ms": {"max_docs": 8, "max_wait_ms": 5},
    "64 documents, 5 ms": {"max_docs": 64, "max_wait_ms": 5},
}

Rows = list[tuple[str, Metrics]]


def batching(rounds: int) -> Rows:
    """One document a request, at CONNECTIONS: CPU, calls of the provider and time of a request."""
    systems: dict[str, System] = {name: partial(_sidecar, settings) for name, settings in SETTINGS.items()}
    results = interleave(systems, rounds, _measure, WHOLE)
    return [(name, by[EMBEDDING]) for name, by in results.items()]


def _sidecar(settings: dict[str, int] | None, place: Place) -> AbstractContextManager[Target]:
    return sidecar_of(place, place.cpus.relay, embedding={"_sidecar": {"batching": settings}})


def _measure(target: Target, place: Place) -> list[tuple[str, Metrics]]:
    load(target, EMBEDDING, CONNECTIONS, seconds=WARM_UP_SECONDS)
    before = _calls(place)
    with watched(target.pid) as watch:
        report = load(target, EMBEDDING, CONNECTIONS, seconds=SECONDS)
    requests = max(report["requests"], 1)
    figures: Metrics = {
        "per_cpu_second": requests / watch.cpu_seconds,
        "us": watch.cpu_seconds * 1e6 / requests,
        "calls": (_calls(place) - before) / requests,
        "per_second": requests / report["seconds"],
        "errors": sum(report["errors"].values()),
    }
    figures |= {f"took_ms_{share}": value for share, value in report["took_ms"].items()}
    return [(EMBEDDING, figures)]


def _calls(place: Place) -> int:
    """How often the provider has been called."""
    return int(httpx.get(f"http://127.0.0.1:{place.provider}/calls", timeout=30).text)
