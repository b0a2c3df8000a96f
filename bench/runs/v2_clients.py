"""What a chunk costs by each way in: `_predict/stream`, V2 over HTTP and over gRPC; beside MLServer's, where it is."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import httpx

from bench.relays.processes import free_port
from bench.relays.runtime_systems import mlserver
from bench.relays.systems import (
    V2_BODY,
    V2_PATH,
    Place,
    Target,
    create_connector,
    create_model,
    sidecar_process,
    wait_for,
)
from bench.runs import scenarios
from bench.runs.measuring import Metrics, measure, warm_up
from bench.runs.rounds import bench_place, medians, missing, say
from bench.traffic.stream_plan import StreamPlan

# A gRPC client takes more CPU than others, so fewer streams, for the load not to be what is measured.
_LOADS = (
    replace(scenarios.PACED, stream=StreamPlan(100, scenarios.TOKEN_SECONDS), connections=100, streams=100),
    replace(scenarios.BULK, connections=32, seconds=3),
)
_GZIP = "Accept-Encoding: gzip\r\n"

Rows = list[tuple[str, Metrics]]


def v2(rounds: int) -> Rows:
    """CPU of a chunk at a model's pace and in bulk, by each way in."""
    runs_of: dict[str, list[Metrics]] = {}
    with bench_place() as place:
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}: v2")
            with _sidecar(place) as ways:
                _measure_all(place, ways, runs_of)
            if reason := missing("mlserver"):
                say(reason)
                continue
            with mlserver(place) as target:
                _measure_all(place, {"MLServer infer_stream": target, "MLServer gRPC": target.over_grpc()}, runs_of)
    return [(name, medians(runs)) for name, runs in runs_of.items()]


def _measure_all(place: Place, ways: Mapping[str, Target], runs_of: dict[str, list[Metrics]]) -> None:
    for name, target in ways.items():
        warm_up(target)
        paced, bulk = (measure(target, load, place.provider) for load in _LOADS)
        costs = {
            "paced_us": paced["cpu_seconds"] * 1e6 / paced["chunks"],
            "bulk_us": bulk["cpu_seconds"] * 1e6 / bulk["chunks"],
            "errors": paced["errors"] + bulk["errors"],
        }
        runs_of.setdefault(name, []).append(costs)


@contextmanager
def _sidecar(place: Place) -> Iterator[dict[str, Target]]:
    port, grpc_port = free_port(), free_port()
    with sidecar_process(place, place.cpus.relay, port, arguments=("--grpc-port", str(grpc_port))) as process:
        wait_for(f"http://127.0.0.1:{port}/_health/ready", place.folder / "sidecar.log", process)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}/_plugins/_ml", timeout=30) as client:
            model_id = create_model(client, create_connector(client, place))
        body = '{"parameters":{"messages":[{"role":"user","content":"PROMPT"}]}}'
        predict = Target(port, f"/_plugins/_ml/models/{model_id}/_predict/stream", body, '"is_last":true', process.pid)
        infer = Target(port, V2_PATH, V2_BODY, "finish_reason", process.pid, grpc_port=grpc_port)
        yield {
            "_predict/stream": predict,
            "infer_stream": infer,
            "infer_stream, gzip": replace(infer, headers=_GZIP),
            "gRPC": infer.over_grpc(),
        }
