"""A server that is given a folder of models, as its operator starts it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from integration_tests.support.conditions import eventually
from integration_tests.support.sidecars import Sidecar, running_sidecar

READY_SECONDS = 60
_KEEPER = re.compile(r"keeper ([0-9]+) serves")


@dataclass(frozen=True, slots=True)
class RuntimeServer:
    """The server, and what it shows of its models' processes; `models` is their folder."""

    sidecar: Sidecar
    models: Path

    @property
    def log(self) -> str:
        """What it and its models' processes have written so far."""
        return self.sidecar.log.read_text()

    def model(self, name: str) -> dict[str, Any]:
        """The model's document as GET responds with it; empty without it."""
        response = self.sidecar.client.get(f"/_plugins/_ml/models/runtime-{name}")
        return dict(response.json()) if response.status_code == 200 else {}

    def state(self, name: str) -> str:
        """The model's state."""
        return str(self.model(name).get("model_state"))

    def wait_for(self, name: str, state: str = "DEPLOYED") -> None:
        """Returns once the model has the state."""
        eventually(lambda: self.state(name) == state, READY_SECONDS)

    def post(self, path: str, **body: Any) -> httpx.Response:
        """The response to a call below `/_plugins/_ml`, whatever its status."""
        return self.sidecar.client.post(f"/_plugins/_ml{path}", json=body)

    def predict(self, name: str = "echo") -> httpx.Response:
        """The response to a prediction."""
        return self.post(f"/models/runtime-{name}/_predict", parameters={"inputs": "hi"})

    def said(self, name: str = "echo") -> str:
        """The text that the model predicts; what went wrong if it does not."""
        response = self.predict(name)
        if response.status_code != 200:
            return response.text
        data = response.json()["inference_results"][0]["output"][0]["dataAsMap"]
        return str(data["outputs"][0]["data"][0])

    def processes(self, name: str = "echo") -> list[dict[str, Any]]:
        """The model's processes as its profile shows them."""
        body = {"model_ids": [f"runtime-{name}"]}
        response = self.sidecar.client.request("GET", "/_plugins/_ml/profile", json=body).json()
        for node in response.get("nodes", {}).values():
            for model in node["models"].values():
                return list(model["runtime"]["processes"])
        return []

    def pid(self, name: str = "echo") -> int:
        """The id of the model's one process; 0 while it is not ready."""
        processes = self.processes(name)
        return int(processes[0]["pid"]) if processes and processes[0]["ready"] else 0

    def keeper(self) -> int:
        """The id of the keeper that has served last."""
        eventually(lambda: _KEEPER.search(self.log))  # logged a moment after it serves
        return int(_KEEPER.findall(self.log)[-1])


@contextmanager
def serving_models(folder: Path, models: Path, *arguments: str, **settings: str) -> Iterator[RuntimeServer]:
    """A server with the models of a folder, stopped at the end."""
    named = {f"opensearch_ml_stream.{name}": value for name, value in settings.items()}
    with running_sidecar(folder, settings=named, arguments=("--models", str(models), *arguments)) as sidecar:
        yield RuntimeServer(sidecar, models)
