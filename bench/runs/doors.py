"""What streams cost by the API that their client speaks, as multiples of `_predict/stream` on the same provider.

Peers that speak OpenAI's API are measured beside, on the provider that speaks it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import httpx

from bench.relays.processes import free_port
from bench.relays.systems import Place, Target, create_connector, create_model, sidecar_process, wait_for
from bench.runs import scenarios
from bench.runs.measuring import Metrics, measure, warm_up
from bench.runs.rounds import SYSTEMS, bench_place, missing, say
from bench.runs.scenarios import Scenario
from bench.traffic.stream_forms import PADDED_PATH
from bench.traffic.stream_plan import StreamPlan

PEERS = ("tensorzero", "portkey", "litellm")

_TURNS = 9  # of each way in a round, so that each is measured in quiet moments, too
_WHOLE_TURNS = 3  # in which all loads are measured

_PACED = replace(scenarios.PACED, stream=StreamPlan(50, scenarios.TOKEN_SECONDS), connections=100, streams=100)
_BULK = replace(scenarios.BULK, seconds=1)
_SHORT = Scenario("request", StreamPlan(1), 16, seconds=0.5)  # a chunk a stream: what is left is the request
_LOADS = (replace(scenarios.FIRST, streams=60), _SHORT, _PACED, _BULK)
_PREDICT = "_predict/stream"
_MESSAGES = '"messages":[{"role":"user","content":"PROMPT"}]'
_CHAT = '{"model":"%s","stream":true,' + _MESSAGES + "}"
_CLAUDE = '{"model":"%s","stream":true,"max_tokens":1024,' + _MESSAGES + "}"
_RESPONSE = '{"model":"%s","stream":true,"input":"PROMPT"}'

# The providers by the blueprint of a connector to each, and the path at which its streams stand.
_PROVIDERS = {
    "OpenAI": ("openai-chat", ""),
    "OpenAI, padded": ("openai-chat", PADDED_PATH),
    "Anthropic": ("anthropic-messages", ""),
}

Rows = list[tuple[str, Metrics]]


def doors(rounds: int) -> Rows:
    """CPU of a chunk at a model's pace and in bulk, and of a stream of one chunk; time to the first chunk."""
    figures: dict[tuple[str, str], Metrics] = {}  # by provider and way in
    with bench_place() as place:
        say("doors")
        with _sidecar(place) as ways:
            figures |= _in_turns(place, ways, rounds)
        for name in PEERS:
            if reason := missing(name):
                say(reason)
                continue
            say(f"doors: {name}")
            with SYSTEMS[name](place) as target:
                figures |= _in_turns(place, {("OpenAI", name): target}, rounds)
    return compared(figures)


def _in_turns(place: Place, ways: Mapping[tuple[str, str], Target], rounds: int) -> dict[tuple[str, str], Metrics]:
    for target in ways.values():
        warm_up(target)
    runs_of: dict[tuple[str, str], list[Metrics]] = {way: [] for way in ways}
    for turn in range(rounds * _TURNS):
        loads = _LOADS if turn % _TURNS < _WHOLE_TURNS else _LOADS[:2]
        for way, target in ways.items():
            runs_of[way].append(_measure(place, target, loads))
    return {way: _least(runs) for way, runs in runs_of.items()}


def _least(runs: Sequence[Metrics]) -> Metrics:
    """The least of each metric, as what other work on the machine adds is never negative; of errors all."""
    names = dict.fromkeys(name for run in runs for name in run)
    least = {name: min(run[name] for run in runs if name in run) for name in names}
    return {**least, "errors": sum(run["errors"] for run in runs)}


def compared(figures: Mapping[tuple[str, str], Metrics]) -> Rows:
    """The rows, with their costs and times as multiples of those of `_predict/stream` on the same provider."""
    rows = []
    for (provider, way), own in figures.items():
        base = figures.get((provider, _PREDICT), {})
        ratios = {f"{name}_of_predict": own[name] / base[name] for name in own if way != _PREDICT and base.get(name)}
        rows.append((f"{way}, {provider}", {**own, **ratios}))
    return rows


def _measure(place: Place, target: Target, loads: Sequence[Scenario]) -> Metrics:
    of = {load.name: measure(target, load, place.provider) for load in loads}
    costs = {f"{name}_us": figures["cpu_seconds"] * 1e6 / figures["chunks"] for name, figures in of.items()}
    del costs["first_us"]
    return {"first_ms": of["first"]["first_ms_p50"], **costs, "errors": sum(each["errors"] for each in of.values())}


@contextmanager
def _sidecar(place: Place) -> Iterator[dict[tuple[str, str], Target]]:
    port = free_port()
    with sidecar_process(place, place.cpus.relay, port) as process:
        wait_for(f"http://127.0.0.1:{port}/_health/ready", place.folder / "sidecar.log", process)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}/_plugins/_ml", timeout=30) as client:
            ids = {
                provider: create_model(client, create_connector(client, place, blueprint, path))
                for provider, (blueprint, path) in _PROVIDERS.items()
            }
        yield {
            (provider, way): target
            for provider, model_id in ids.items()
            for way, target in _ways(port, process.pid, model_id).items()
            if provider != "OpenAI, padded" or way in (_PREDICT, "/v1/chat/completions")
        }


def _ways(port: int, pid: int, model_id: str) -> dict[str, Target]:
    """The ways in to a model."""
    predict, body = f"/_plugins/_ml/models/{model_id}/_predict/stream", f'{{"parameters":{{{_MESSAGES}}}}}'
    return {
        _PREDICT: Target(port, predict, body, '"is_last":true', pid),
        "/v1/chat/completions": Target(port, "/v1/chat/completions", _CHAT % model_id, "[DONE]", pid),
        "/v1/messages": Target(port, "/v1/messages", _CLAUDE % model_id, "message_stop", pid),
        "/v1/responses": Target(port, "/v1/responses", _RESPONSE % model_id, '"total_tokens"', pid, repeats_text=True),
    }
