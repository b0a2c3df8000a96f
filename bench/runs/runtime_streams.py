"""What a chunk of a runtime costs here and in MLServer, and what a runtime's streams do to those of other models."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

import httpx

from bench.relays.runtime_systems import GENERATING, RELAYING, mlserver_with, predict_stream, sidecar_with
from bench.relays.systems import Place, Target, create_connector, create_model
from bench.runs import scenarios
from bench.runs.measuring import Metrics, begin_load, finish_load, measure, metrics, provider_counts, warm_up, watched
from bench.runs.rounds import bench_place, medians, missing, say
from bench.traffic.stream_plan import StreamPlan

_PACED = replace(scenarios.PACED, stream=StreamPlan(100, scenarios.TOKEN_SECONDS), connections=100, streams=100)
_BULK = replace(scenarios.BULK, connections=32, seconds=3)
_BESIDE = scenarios.PACED  # 200 streams

Rows = list[tuple[str, Metrics]]
Start = Callable[[Place], AbstractContextManager[Target]]

_HERE: dict[str, Start] = {"generating, here": lambda place: sidecar_with(place, GENERATING)}
_WITH_MLSERVER: dict[str, Start] = {
    "generating, here with MLServer's types": lambda place: sidecar_with(place, GENERATING, in_environment=True),
    "generating, MLServer": lambda place: mlserver_with(place, GENERATING),
    "relaying, here with MLServer's types": lambda place: sidecar_with(place, RELAYING, in_environment=True),
    "relaying, MLServer": lambda place: mlserver_with(place, RELAYING),
}


def runtimes(rounds: int) -> Rows:
    """CPU of a chunk, of all processes: the same two runtimes here and in MLServer, at a model's pace and in bulk."""
    reason = missing("mlserver")
    if reason:
        say(reason)
    systems = _HERE if reason else {**_HERE, **_WITH_MLSERVER}
    runs_of: dict[str, list[Metrics]] = {}
    with bench_place() as place:
        for number in range(rounds):
            for name, start in systems.items():
                say(f"round {number + 1} of {rounds}: {name}")
                with start(place) as target:
                    ways = {name: target, f"{name}, by gRPC": target.over_grpc()}
                    if name in _HERE:
                        ways[f"{name}, by _predict/stream"] = predict_stream(target)
                    for way, asked in ways.items():
                        runs_of.setdefault(way, []).append(_costs(place, asked))
    return [(name, medians(runs)) for name, runs in runs_of.items()]


def _costs(place: Place, target: Target) -> Metrics:
    warm_up(target)
    paced, bulk = (measure(target, load, place.provider) for load in (_PACED, _BULK))
    return {
        "paced_us": paced["cpu_seconds"] * 1e6 / paced["chunks"],
        "bulk_us": bulk["cpu_seconds"] * 1e6 / bulk["chunks"],
        "errors": paced["errors"] + bulk["errors"],
    }


def runtimes_beside(rounds: int) -> Rows:
    """Time added per token of 200 streams of a remote model: alone, and beside 200 streams of a runtime.

    The server and the runtime's process share all CPUs with the load and the provider.
    """
    alone: list[Metrics] = []
    beside: list[Metrics] = []
    with bench_place() as place:
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}: streams beside a runtime's")
            with sidecar_with(place, GENERATING, cpus=place.cpus.relay | place.cpus.load) as runtime:
                remote = _remote_model(place, runtime)
                for target in (remote, runtime):
                    warm_up(target)
                alone.append(measure(remote, _BESIDE, place.provider))
                beside.append(_while_a_runtime_streams(place, remote, runtime))
    return [("200 streams", medians(alone)), ("beside 200 of a runtime", medians(beside))]


def _remote_model(place: Place, runtime: Target) -> Target:
    with httpx.Client(base_url=f"http://127.0.0.1:{runtime.port}/_plugins/_ml", timeout=30) as client:
        model_id = create_model(client, create_connector(client, place))
    body = '{"parameters":{"messages":[{"role":"user","content":"PROMPT"}]}}'
    path = f"/_plugins/_ml/models/{model_id}/_predict/stream"
    return Target(runtime.port, path, body, '"is_last":true', runtime.pid)


def _while_a_runtime_streams(place: Place, remote: Target, runtime: Target) -> Metrics:
    provider_counts(place.provider)
    with watched(remote.pid) as watch:
        loads = [begin_load(target, _BESIDE) for target in (runtime, remote)]
        disturbing, report = (finish_load(load) for load in loads)
    figures = metrics(_BESIDE, report, watch, provider_counts(place.provider))
    return {**figures, "errors": figures["errors"] + sum(disturbing["errors"].values())}
