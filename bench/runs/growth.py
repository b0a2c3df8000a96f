"""How costs grow with streams, chunks, bytes, workers and management calls, and how long the sidecar takes to start."""

import time
from dataclasses import replace

import httpx

from bench.relays.processes import free_port
from bench.relays.systems import Place, Target, create_connector, create_model, sidecar, sidecar_of, sidecar_process
from bench.runs import scenarios
from bench.runs.measuring import Metrics, begin_load, finish_load, measure, metrics, provider_counts, warm_up, watched
from bench.runs.rounds import bench_place, medians, run_rounds, say
from bench.runs.scenarios import Scenario
from bench.traffic.stream_forms import OPENAI
from bench.traffic.stream_plan import StreamPlan

MODELS = 200
STARTS_A_ROUND = 3
CONNECT_AGAIN_SECONDS = 0.005
MANAGEMENT_STARTS_SECONDS = 1.5  # when all streams are open

GUARDRAILS = {
    "no guardrail": (),
    "a pattern": (".*badword.*",),
    "ten patterns": tuple(rf"(?i).*\b{word}word\b.*" for word in "abcdefghij"),
}

Rows = list[tuple[str, Metrics]]

LARGE = (
    scenarios.NORMAL,
    scenarios.LONG,
    scenarios.HALF_BIG,
    scenarios.BIG,
    scenarios.BYTEWISE,
    scenarios.BYTEWISE_LONG,
)


def _with_costs(scenario: Scenario, figures: Metrics) -> Metrics:
    """The metrics with the CPU per chunk in microseconds and per byte of the provider's in nanoseconds."""
    cpu, chunks = figures["cpu_seconds"], figures["chunks"]
    size = len(OPENAI.chunks(scenario.stream.text)[0] % (0, 0))
    return {**figures, "us_per_chunk": cpu * 1e6 / chunks, "ns_per_byte": cpu * 1e9 / (chunks * size)}


def _each(chosen: tuple[Scenario, ...], rounds: int, systems: tuple[str, ...] = ("sidecar",)) -> Rows:
    return [
        (
            scenario.name if system == "sidecar" else f"{system}, {scenario.name}",
            _with_costs(scenario, by[scenario.name]),
        )
        for system, by in run_rounds(systems, chosen, rounds).items()
        for scenario in chosen
    ]


def large(rounds: int) -> Rows:
    """CPU per chunk and byte of long and big responses, and of one written a byte at a time, beside ordinary ones."""
    return _each(LARGE, rounds)


def streams(rounds: int) -> Rows:
    """CPU per chunk at the same rate of chunks, from 100 or 2,000 streams at a time; nginx shows the kernel's share."""
    return _each((scenarios.FEW_STREAMS, scenarios.MANY_STREAMS), rounds, ("sidecar", "nginx"))


def workers(rounds: int) -> Rows:
    """Capacity of one worker on one CPU and of two on two, with as many streams for each.

    On a machine of few CPUs the load generator takes part of what the workers have. So capacity is not what came
    through but what one second of the busiest worker's CPU carries: chunks / CPU seconds of the busiest process.
    That is the rate at which the first worker is full, with the load's CPU left out, uneven spreading counted in.
    """
    runs_of: dict[str, list[Metrics]] = {"1 worker": [], "2 workers": []}
    with bench_place() as place:
        for number in range(rounds):
            for count, name in enumerate(runs_of, 1):
                say(f"round {number + 1} of {rounds}: {name}")
                streams = scenarios.WORKER.streams * count
                load = replace(scenarios.WORKER, connections=streams, streams=streams)
                cpus = place.cpus.relay if count == 1 else place.cpus.relay | place.cpus.load
                with sidecar_of(place, cpus, count) as target:
                    warm_up(target)
                    runs_of[name].append(measure(target, load, place.provider))
    rows = [(name, medians(runs)) for name, runs in runs_of.items()]
    base = rows[0][1]["chunks_per_busiest_second"]
    return [(name, {**each, "scaling": each["chunks_per_busiest_second"] / base}) for name, each in rows]


def management(rounds: int) -> Rows:
    """Time added per token at 500 running streams: alone, then while 200 models are created."""
    alone: list[Metrics] = []
    beside: list[Metrics] = []
    with bench_place() as place:
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}: management")
            with sidecar(place) as target:
                warm_up(target)
                alone.append(measure(target, scenarios.MANAGEMENT, place.provider))
                beside.append(_while_models_are_created(place, target))
    return [("500 streams", medians(alone)), (f"while {MODELS} models are created", medians(beside))]


def _while_models_are_created(place: Place, target: Target) -> Metrics:
    provider_counts(place.provider)
    with (
        watched(target.pid) as watch,
        httpx.Client(base_url=f"http://127.0.0.1:{target.port}/_plugins/_ml", timeout=60) as client,
    ):
        connector_id = create_connector(client, place)
        load = begin_load(target, scenarios.MANAGEMENT)
        time.sleep(MANAGEMENT_STARTS_SECONDS)
        for _ in range(MODELS):
            create_model(client, connector_id)
        report = finish_load(load)
    return metrics(scenarios.MANAGEMENT, report, watch, provider_counts(place.provider))


def guardrails(rounds: int) -> Rows:
    """Time that an output guardrail holds back a token at a model's pace, and its CPU, beside the same stream without.

    None of the patterns is found.
    """
    runs_of: dict[str, list[Metrics]] = {}
    with bench_place() as place:
        for number in range(rounds):
            for name, patterns in GUARDRAILS.items():
                say(f"round {number + 1} of {rounds}: {name}")
                guarded = {"guardrails": {"output_guardrail": {"regex": patterns}}} if patterns else None
                with sidecar_of(place, place.cpus.relay, chat=guarded) as target:
                    warm_up(target, scenarios.GUARDED.stream.text)
                    runs_of.setdefault(name, []).append(measure(target, scenarios.GUARDED, place.provider))
    return [(name, _with_costs(scenarios.GUARDED, medians(runs))) for name, runs in runs_of.items()]


def cold_start(rounds: int) -> Rows:
    """Seconds from the start of the process to the first byte of a stream, of a model in the embedded store."""
    seconds: list[Metrics] = []
    with bench_place() as place:
        with sidecar(place) as target:
            warm_up(target)
        body = target.body_for(StreamPlan(2))
        for number in range(rounds * STARTS_A_ROUND):
            say(f"start {number + 1} of {rounds * STARTS_A_ROUND}")
            port = free_port()
            began = time.monotonic()
            with sidecar_process(place, place.cpus.relay, port):
                _stream_a_byte(f"http://127.0.0.1:{port}{target.path}", body)
                seconds.append({"seconds": time.monotonic() - began})
    return [("first streamed byte", medians(seconds))]


def _stream_a_byte(url: str, body: str) -> None:
    """Reads the first byte of a stream, once the server accepts connections."""
    headers = {"content-type": "application/json"}
    while True:
        try:
            with httpx.stream("POST", url, content=body, headers=headers, timeout=30) as response:
                response.raise_for_status()
                next(response.iter_raw())
                return
        except httpx.ConnectError:
            time.sleep(CONNECT_AGAIN_SECONDS)
