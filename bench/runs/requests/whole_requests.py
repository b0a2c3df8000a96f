"""What a whole request costs: a chat completion, embeddings of one document and of eight; here and by each peer."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from bench.relays.ml_commons import ml_commons
from bench.relays.systems import NotStarted, Place, System, Target, sidecar_batching, sidecar_openai
from bench.runs.measuring import WHOLE, Metrics, Report, begin, finish_load, watched
from bench.runs.rounds import SYSTEMS, Measure, interleave
from bench.traffic.request_load import RequestPlan, as_json
from bench.traffic.whole_bodies import CHAT, EMBEDDING, EMBEDDING_8

CONNECTIONS = 32

# Those of streams, and those that are measured for whole requests alone.
REQUEST_SYSTEMS: dict[str, System] = {
    **SYSTEMS,
    "sidecar-openai": sidecar_openai,
    "sidecar-batching": sidecar_batching,
    "ml-commons": ml_commons,
}

Rows = list[tuple[str, Metrics]]


@dataclass(frozen=True, slots=True)
class Effort:
    """Seconds of load by CONNECTIONS for each kind of request; requests one after the other by one connection."""

    seconds: float = 3
    alone: int = 400


def predict(rounds: int, names: Sequence[str] = (), effort: Effort | None = None) -> Rows:
    """Chat completions: CPU, and time added."""
    chosen = [name for name in names or REQUEST_SYSTEMS if name != "sidecar-batching"]
    return _rows((CHAT,), rounds, chosen, effort or Effort())


def embed(rounds: int, names: Sequence[str] = (), effort: Effort | None = None) -> Rows:
    """Embeddings of one document; and the CPU of a call with eight, also as a multiple of a call with one."""
    rows = _rows((EMBEDDING, EMBEDDING_8), rounds, names or tuple(REQUEST_SYSTEMS), effort or Effort())
    for _, figures in rows:
        one, eight = figures.get("us"), figures.get("us_8")
        if one and eight:
            figures["eight_to_one"] = eight / one
    return rows


def _rows(whats: Sequence[str], rounds: int, names: Sequence[str], effort: Effort) -> Rows:
    chosen = {name: REQUEST_SYSTEMS[name] for name in names}
    results = interleave(chosen, rounds, _measure_each(whats, effort), WHOLE)
    base = {name: by[whats[0]] for name, by in results.items() if whats[0] in by}
    rows = []
    for name, figures in base.items():
        eight = results[name].get(EMBEDDING_8, {})
        rows.append((name, {**figures, **_compared(figures, base), **_renamed(eight)}))
    return rows


def _compared(figures: Metrics, base: dict[str, Metrics]) -> Metrics:
    """The time added to a direct call's at one connection, and the throughput as a share of nginx's."""
    compared: Metrics = {}
    if "direct" in base and figures is not base["direct"]:
        for share in ("p50", "p99"):
            compared[f"added_ms_{share}"] = figures[f"alone_ms_{share}"] - base["direct"][f"alone_ms_{share}"]
    nginx = base.get("nginx", {}).get("per_cpu_second")
    if nginx and "per_cpu_second" in figures:
        compared["of_nginx"] = figures["per_cpu_second"] / nginx
    return compared


def _renamed(eight: Metrics) -> Metrics:
    return {f"{name}_8": value for name, value in eight.items() if name in ("us", "errors")}


def _measure_each(whats: Sequence[str], effort: Effort) -> Measure:
    def measure_each(target: Target, place: Place) -> list[tuple[str, Metrics]]:
        return [(what, measure(target, what, effort)) for what in whats if what in target.asks]

    return measure_each


def measure(target: Target, what: str, effort: Effort) -> Metrics:
    """The metrics of one kind of request; NotStarted if the first of them get no right response."""
    warm = load(target, what, CONNECTIONS, seconds=target.warm_up_seconds)
    if warm["errors"]:
        raise NotStarted(f"port {target.port} does not serve {what}: {warm['errors']}")
    with watched(target.pid) as watch:
        report = load(target, what, CONNECTIONS, seconds=effort.seconds)
    alone = load(target, what, 1, requests=effort.alone)
    figures: Metrics = {
        "errors": sum(report["errors"].values()) + sum(alone["errors"].values()),
        "requests": report["requests"],
        "per_second": report["requests"] / report["seconds"],
        "load_cpu_share": report["cpu_seconds"] / report["seconds"],
    }
    figures |= {f"alone_ms_{share}": value for share, value in alone["took_ms"].items()}
    figures |= {f"took_ms_{share}": value for share, value in report["took_ms"].items()}
    if watch.cpu_seconds and report["requests"]:
        figures["per_cpu_second"] = report["requests"] / watch.cpu_seconds
        figures["us"] = watch.cpu_seconds * 1e6 / report["requests"]
        figures["cpu_share"] = watch.cpu_seconds / report["seconds"]
        figures["kernel_share"] = watch.kernel_seconds / watch.cpu_seconds
    return figures


def load(target: Target, what: str, connections: int, requests: int = 0, seconds: float = 0) -> Report:
    """The report of a whole load (see request_load.py)."""
    return finish_load(begin_load(target, what, connections, requests, seconds))


def begin_load(
    target: Target, what: str, connections: int, requests: int = 0, seconds: float = 0
) -> subprocess.Popen[str]:
    """Starts the load generator, on the CPUs of this process; `finish_load` waits for it."""
    ask = target.asks[what]
    plan = RequestPlan(target.port, ask.path, ask.body, what, connections, requests, seconds)
    return begin("bench.traffic.request_load", as_json(plan))
