"""Routers written in Rust, from PyPI: vLLM router and SMG, which pass bytes on, and TensorZero, which translates."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.relays.peers import command_of
from bench.relays.processes import free_port, started
from bench.relays.systems import START_SECONDS, NotStarted, Place, Target, openai_target, wait_for
from bench.traffic.whole_bodies import CHAT

_TENSORZERO = """\
[gateway]
observability.enabled = false
[models.bench]
routing = ["provider"]
[models.bench.providers.provider]
type = "openai"
model_name = "bench"
api_base = "http://127.0.0.1:{provider}/v1/"
api_key_location = "none"
[embedding_models.bench]
routing = ["provider"]
[embedding_models.bench.providers.provider]
type = "openai"
model_name = "bench"
api_base = "http://127.0.0.1:{provider}/v1/"
api_key_location = "none"
"""


@contextmanager
def vllm_router(place: Place) -> Iterator[Target]:
    """vLLM's router before one worker, whose health it asks for."""
    with _router(place, "vllm-router", ("--log-level", "error")) as target:
        yield target


@contextmanager
def smg(place: Place) -> Iterator[Target]:
    """Shepherd Model Gateway before one OpenAI-compatible worker; it has no embeddings of such."""
    options = ("--backend", "openai", "--history-backend", "none", "--log-level", "error")
    with _router(place, "smg", options, ("launch",)) as target:
        yield replace(target, asks={CHAT: target.asks[CHAT]})


@contextmanager
def _router(place: Place, name: str, options: Sequence[str], begin: Sequence[str] = ()) -> Iterator[Target]:
    port, log = free_port(), place.folder / f"{name}.log"
    command = [str(command_of(name)), *begin, "--host", "127.0.0.1", "--port", str(port), *options]
    command += ["--worker-urls", f"http://127.0.0.1:{place.provider}", "--policy", "round_robin"]
    command += ["--prometheus-host", "127.0.0.1", "--prometheus-port", str(free_port())]
    with started(command, place.cpus.relay, log, folder=place.folder) as process:
        wait_for(f"http://127.0.0.1:{port}/readiness", log, process)
        yield openai_target(port, process.pid)


@contextmanager
def tensorzero(place: Place) -> Iterator[Target]:
    """TensorZero's gateway without its database, measured at its OpenAI-compatible routes."""
    config, log = place.folder / "tensorzero.toml", place.folder / "tensorzero.log"
    config.write_text(_TENSORZERO.format(provider=place.provider))
    log.write_bytes(b"")
    script = Path(__file__).with_name("tensorzero_gateway.py")
    command = [str(command_of("tensorzero")), str(script), str(config)]
    with started(command, place.cpus.relay, log, {"RUST_LOG": "error"}, place.folder) as process:
        yield _with_its_names(openai_target(_port_in(log), process.pid))


def _port_in(log: Path) -> int:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if match := re.search(r"^address http://[^/]*:(\d+)/", log.read_text(), re.MULTILINE):
            return int(match[1])
        time.sleep(0.05)
    raise NotStarted(f"TensorZero does not start; its log ends with: {log.read_text().strip()[-500:]}")


def _with_its_names(target: Target) -> Target:
    """The same requests under TensorZero's names and paths."""

    def named(body: str, kind: str) -> str:
        return re.sub(r'"model": ?"bench"', f'"model": "tensorzero::{kind}_name::bench"', body)

    asks: Mapping[str, str] = {what: "model" if what == CHAT else "embedding_model" for what in target.asks}
    return replace(
        target,
        path=f"/openai{target.path}",
        body=named(target.body, "model"),
        asks={
            what: replace(ask, path=f"/openai{ask.path}", body=named(ask.body, asks[what]))
            for what, ask in target.asks.items()
        },
    )
