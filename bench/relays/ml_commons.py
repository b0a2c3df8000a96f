"""A real ML Commons in OpenSearch, where ML_COMMONS_PLUGIN names its plugin (see scripts/opensearch.sh)."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx

from bench.relays.processes import free_port, on_cpus
from bench.relays.systems import START_SECONDS, NotStarted, Place, Target, create_models, ml_commons_target
from bench.traffic.whole_bodies import DOCUMENTS

_CHECKOUT = Path(__file__).parents[2]
_SCRIPT = _CHECKOUT / "scripts" / "opensearch.sh"
_WARM_UP_SECONDS = 30  # for each kind of request: a JVM compiles what it runs often
_AGAIN_SECONDS = 1.0


@contextmanager
def ml_commons(place: Place) -> Iterator[Target]:
    """OpenSearch with ML Commons on the relay's CPU, warmed up."""
    port = free_port()
    with on_cpus(place.cpus.relay):
        _run("ml-commons", port)
    try:
        pid = int((_folder() / f"run-{port}" / "pid").read_text())
        with httpx.Client(base_url=f"http://127.0.0.1:{port}/_plugins/_ml", timeout=60) as client:
            ids = _create_models(client, place)
        target = ml_commons_target(port, pid, *ids)
        by_algorithm = f"/_plugins/_ml/_predict/text_embedding/{ids[1]}"  # the route that reads `text_docs` there
        asks = {
            what: replace(ask, path=by_algorithm) if what in DOCUMENTS else ask for what, ask in target.asks.items()
        }
        yield replace(target, asks=asks, warm_up_seconds=_WARM_UP_SECONDS)
    finally:
        _run("stop", port)


def is_named() -> bool:
    return "ML_COMMONS_PLUGIN" in os.environ


def _folder() -> Path:
    return Path(os.environ.get("OPENSEARCH_DIR") or _CHECKOUT / ".opensearch")


def _run(command: str, port: int) -> None:
    done = subprocess.run([_SCRIPT, command, str(port)], capture_output=True, text=True, cwd=_CHECKOUT)
    if done.returncode:
        raise NotStarted(f"opensearch.sh {command}: {done.stderr.strip()[-500:]}")


def _create_models(client: httpx.Client, place: Place) -> tuple[str, str]:
    """The ids of the models, once ML Commons has made the key of its credentials, some seconds after its start."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return create_models(client, place, {}, {})
        except httpx.HTTPStatusError as error:
            if time.monotonic() > deadline:
                raise NotStarted(f"ML Commons refuses a connector: {error.response.text}") from None
        time.sleep(_AGAIN_SECONDS)
