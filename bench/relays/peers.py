"""Systems from PyPI and npm, each in a folder of its own, and LiteLLM's proxy and Portkey's gateway as two to measure.

`python -m bench peers` installs them. They lie in bench/.peers, or in the folder that BENCH_PEERS names.
"""

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
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
NPM_PACKAGES = {
    "portkey": {
        "dependencies": {"@portkey-ai/gateway": "1.15.2"},
        # With a later one it answers 500 to all: it changes the headers of responses, which can no more be changed.
        "overrides": {"@hono/node-server": "1.13.8"},
    }
}
_COMMANDS = {
    "tensorzero": "bin/python",  # its gateway is a function of the package
    "portkey": "node_modules/@portkey-ai/gateway/build/start-server.js",
}

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
    return environments() / peer / _COMMANDS.get(peer, f"bin/{peer}")


def install() -> None:
    """Installs each peer that is not there yet; those from npm where Node.js is."""
    for peer in (*PACKAGES, *NPM_PACKAGES):
        folder = environments() / peer
        if command_of(peer).exists():
            sys.stdout.write(f"{peer} is there\n")
            continue
        if peer in PACKAGES:
            venv.create(folder, with_pip=True)
            subprocess.run([folder / "bin" / "pip", "install", "--quiet", *PACKAGES[peer]], check=True)
        elif shutil.which("npm") is None:
            sys.stdout.write(f"{peer} is left out: it needs Node.js with npm\n")
            continue
        else:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "package.json").write_text(json.dumps(NPM_PACKAGES[peer]))
            subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, check=True)
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


@contextmanager
def portkey(place: Place) -> Iterator[Target]:
    """Portkey's gateway, which is told of the provider by headers."""
    port, log = free_port(), place.folder / "portkey.log"
    command = ["node", str(command_of("portkey")), "--headless", f"--port={port}"]
    with started(command, place.cpus.relay, log, folder=place.folder) as process:
        wait_for(f"http://127.0.0.1:{port}/", log, process)
        provider = f"x-portkey-provider: openai\r\nx-portkey-custom-host: http://127.0.0.1:{place.provider}/v1\r\n"
        yield replace(openai_target(port, process.pid), headers=f"{provider}Authorization: Bearer none\r\n")
