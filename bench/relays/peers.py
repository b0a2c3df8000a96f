"""Systems from PyPI, each in an environment of its own, and LiteLLM's proxy as one to measure.

`python -m bench peers` makes the environments. They lie in bench/.peers, or in the folder that BENCH_PEERS names.
"""

import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.relays.processes import free_port, started
from bench.relays.systems import Place, Target, openai_target, wait_for

PACKAGES = {
    "litellm": ["litellm[proxy]==1.106.2"],
    "mlserver": ["mlserver==1.7.1", "aiohttp", "orjson", "uvloop"],
    "vllm-router": ["vllm-router==0.1.17"],
    "smg": ["smg==1.13.0"],
    "tensorzero": ["tensorzero==2026.6.0"],
}
_COMMANDS = {"tensorzero": "python"}  # its gateway is a function of the package

_LITELLM_CONFIG = """\
model_list:
  - model_name: bench
    litellm_params: {{model: openai/bench, api_base: "http://127.0.0.1:{provider}/v1", api_key: none}}
"""


def environments() -> Path:
    """The folder of all peers' environments."""
    return Path(os.environ.get("BENCH_PEERS") or Path(__file__).parents[1] / ".peers")


def command_of(peer: str) -> Path:
    """The path of the peer's command, which exists only after `install`."""
    return environments() / peer / "bin" / _COMMANDS.get(peer, peer)


def install() -> None:
    """Makes the environment of each peer that has none yet."""
    for peer, packages in PACKAGES.items():
        if command_of(peer).exists():
            sys.stdout.write(f"{peer} is there\n")
            continue
        folder = environments() / peer
        venv.create(folder, with_pip=True)
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", *packages], check=True)
        sys.stdout.write(f"{peer} installed\n")


@contextmanager
def litellm(place: Place) -> Iterator[Target]:
    """LiteLLM's proxy with one worker, measured at its OpenAI-compatible route."""
    port = free_port()
    config = place.folder / "litellm.yaml"
    config.write_text(_LITELLM_CONFIG.format(provider=place.provider))
    command = [str(command_of("litellm")), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    command += ["--num_workers", "1", "--telemetry", "False"]
    # Its price list from the package, not the network; no log line per call; no key, as no other system here has one
    # (it listens on loopback and its provider is the benchmark's).
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    quiet["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"
    log = place.folder / "litellm.log"
    with started(command, place.cpus.relay, log, quiet, place.folder) as process:
        wait_for(f"http://127.0.0.1:{port}/health/liveliness", log, process)
        yield openai_target(port, process.pid)
