"""A real MLServer and this server, started with the same folder of runtimes."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from integration_tests.interop.peers import servers
from integration_tests.support.conditions import eventually
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.stores import free_port

MODELS = Path(__file__).parent / "models"
START_SECONDS = 60  # MLServer's packages are imported once more for each model
_NEEDS_NUMPY = ("arrays",)


@dataclass(frozen=True, slots=True)
class Server:
    """One of the two: its clients' HTTP, and the port of its gRPC."""

    rest: httpx.Client
    grpc_port: int


@dataclass(frozen=True, slots=True)
class Both:
    """`mlserver` and `here`. `has_numpy` is whether the runtimes here run where NumPy and MLServer are installed."""

    mlserver: Server
    here: Server
    sidecar: Sidecar
    has_numpy: bool

    @property
    def in_turn(self) -> tuple[Server, Server]:
        """MLServer, then this server."""
        return self.mlserver, self.here


@contextmanager
def both_servers(folder: Path, in_environment: bool, workers: int) -> Iterator[Both]:
    """Both servers over one folder of models.

    With `in_environment`, `environment_path` of each model is MLServer's own environment, so that the runtimes meet
    MLServer's types here too; without it, they meet this server's.
    """
    grpc_port = free_port()
    settings = _settings()
    models = _models_in(folder, in_environment, settings)
    arguments = ("--models", str(models), "--grpc-port", str(grpc_port), "--workers", str(workers))
    url = f"http://127.0.0.1:{settings['http_port']}"
    with (  # MLServer ends connections that rest, whatever is on its way to it; it gets a new one for each request
        servers.mlserver_of(models, f"{url}/v2/health/ready"),
        running_sidecar(folder, arguments=arguments) as sidecar,
        httpx.Client(base_url=url, timeout=30, limits=httpx.Limits(max_keepalive_connections=0)) as theirs,
        httpx.Client(base_url=sidecar.url, timeout=30) as ours,
    ):
        names = [path.parent.name for path in models.glob("*/model-settings.json")]
        eventually(lambda: all(_is_ready(ours, name) for name in names), START_SECONDS)
        yield Both(Server(theirs, settings["grpc_port"]), Server(ours, grpc_port), sidecar, in_environment)


def _settings() -> dict[str, Any]:
    return {**json.loads((MODELS / "settings.json").read_text()), "http_port": free_port(), "grpc_port": free_port()}


def _models_in(folder: Path, in_environment: bool, settings: dict[str, Any]) -> Path:
    models = folder / "models"
    shutil.copytree(MODELS, models, ignore=shutil.ignore_patterns("__pycache__"))
    (models / "settings.json").write_text(json.dumps(settings))
    for path in models.glob("*/model-settings.json"):
        if in_environment:
            model = json.loads(path.read_text())
            environment = str(servers.command_of("mlserver").parents[1])
            model["parameters"] = {**model.get("parameters", {}), "environment_path": environment}
            path.write_text(json.dumps(model))
        elif path.parent.name in _NEEDS_NUMPY:
            shutil.rmtree(path.parent)
    return models


def _is_ready(client: httpx.Client, name: str) -> bool:
    return client.get(f"/v2/models/{name}/ready").status_code == 200


def tensor(*texts: str, name: str = "prompt", **fields: Any) -> dict[str, Any]:
    return {"name": name, "shape": [len(texts)], "datatype": "BYTES", "data": list(texts), **fields}


def asked(*tensors: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"inputs": list(tensors), **fields}
