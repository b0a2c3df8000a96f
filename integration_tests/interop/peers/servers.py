"""Starts the installed peers."""

import json
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from integration_tests.support.conditions import eventually
from integration_tests.support.stores import free_port

START_SECONDS = 90  # LiteLLM imports for a while

_CHECKOUT = Path(__file__).parents[3]
_LITELLM_CONFIG = """\
model_list:
  - model_name: relayed
    litellm_params: {{model: openai/gpt-fake, api_base: "{provider}/v1", api_key: sk-behind-the-proxy, max_retries: 0}}
router_settings: {{num_retries: 0, disable_cooldowns: true}}
general_settings: {{master_key: {master_key}}}
"""


def command_of(peer: str) -> Path:
    """The peer's program, which `scripts/peers.sh` makes."""
    return Path(os.environ.get("MLSTREAM_PEERS") or _CHECKOUT / ".peers") / peer / "bin" / peer


@contextmanager
def mlserver(folder: Path) -> Iterator[str]:
    """The URL of an MLServer with the model `text-model` (see text_model.py)."""
    port = free_port()
    shutil.copy(Path(__file__).parent / "text_model.py", folder)
    settings = {"host": "127.0.0.1", "http_port": port, "grpc_port": free_port(), "metrics_port": free_port()}
    settings |= {"parallel_workers": 0, "gzip_enabled": False}
    (folder / "settings.json").write_text(json.dumps(settings))
    model = {"name": "text-model", "implementation": "text_model.TextModel"}
    (folder / "model-settings.json").write_text(json.dumps(model))
    url = f"http://127.0.0.1:{port}"
    with mlserver_of(folder, f"{url}/v2/models/text-model/ready"):
        yield url


@contextmanager
def mlserver_of(models: Path, ready: str) -> Iterator[None]:
    """An MLServer with the folder's settings and models, once the URL `ready` responds."""
    with _started("mlserver", ["start", str(models)], models, ready):
        yield


@contextmanager
def litellm(folder: Path, provider: str, master_key: str) -> Iterator[str]:
    """The URL of a LiteLLM proxy whose model `relayed` is chat completions at `provider`."""
    port = free_port()
    (folder / "litellm.yaml").write_text(_LITELLM_CONFIG.format(provider=provider, master_key=master_key))
    arguments = ["--config", "litellm.yaml", "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
    url = f"http://127.0.0.1:{port}"
    with _started("litellm", arguments, folder, f"{url}/health/liveliness"):
        yield url


@contextmanager
def _started(peer: str, arguments: list[str], folder: Path, ready: str) -> Iterator[None]:
    command = command_of(peer)
    if not command.exists():
        pytest.fail(f"{peer} is not installed: run `make peers`")
    log = folder / f"{peer}.log"
    # Its price list comes with the package; without this LiteLLM would fetch it from the network.
    environment = {**os.environ, "PYTHONPATH": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with log.open("wb") as output:
        process = subprocess.Popen([command, *arguments], stdout=output, stderr=output, cwd=folder, env=environment)
    try:
        _wait(process, ready, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], ready: str, log: Path) -> None:
    def responds() -> bool:
        try:
            with urllib.request.urlopen(ready, timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            assert process.poll() is None, f"it ended: {log.read_text()}"
            return False

    eventually(responds, START_SECONDS)
