"""The status file: the keeper's view of the runtime models and their processes, for all workers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson

STATUS_FILE = "status.json"  # in the folder of the runtimes, as is CONTROL_SOCKET
CONTROL_SOCKET = "control.sock"

State = Literal["LOADING", "READY", "FAILED", "UNLOADED"]


def runtimes_folder(folder: Path) -> Path:
    """Return the folder of the runtimes' sockets and status, in the folder that all processes of a server share."""
    return folder / "runtimes"


@dataclass(slots=True)
class ProcessStatus:
    """One process of a model. `memory_bytes` is resident memory; counts are since the start of the process."""

    socket: str
    pid: int = 0
    ready: bool = False
    restarts: int = 0
    retry_in_seconds: float = 0.0
    memory_bytes: int = 0
    in_flight: int = 0
    calls: int = 0
    failures: int = 0
    batches: int = 0
    batched_requests: int = 0


@dataclass(slots=True)
class HandlerStatus:
    """A custom handler of a model. Of several that match a request, the lowest `number` counts."""

    method: str
    path: str
    number: int = 0


@dataclass(slots=True)
class ModelStatus:
    """One runtime model. `reason` says why it is FAILED; `inputs` and `outputs` are its metadata's tensors.

    `versions` are those in its metadata, which this server need not have. `model_id` is the id of its document,
    `is_provided` whether a provider runs it.
    """

    state: State = "LOADING"
    reason: str = ""
    version: str | None = None
    versions: list[str] = field(default_factory=list)
    platform: str | None = None
    inputs: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)
    model_id: str = ""
    is_provided: bool = False
    handlers: list[HandlerStatus] = field(default_factory=list)
    processes: list[ProcessStatus] = field(default_factory=list)

    @property
    def callable_sockets(self) -> list[str]:
        """The sockets of its callable processes: none of an unloaded model, though its processes may still run."""
        return [] if self.state == "UNLOADED" else [one.socket for one in self.processes if one.ready]


def read_status(path: Path) -> dict[str, ModelStatus]:
    """Return the models by name; none if the keeper has not written yet."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    return {name: _model(model) for name, model in orjson.loads(content)["models"].items()}


def write_status(path: Path, models: Mapping[str, ModelStatus]) -> None:
    """Replace the file atomically; there may be only one writer."""
    written = path.with_suffix(".new")
    written.write_bytes(orjson.dumps({"models": {name: asdict(model) for name, model in models.items()}}))
    written.rename(path)


def _model(model: dict[str, Any]) -> ModelStatus:
    processes = [ProcessStatus(**process) for process in model.pop("processes")]
    handlers = [HandlerStatus(**handler) for handler in model.pop("handlers")]
    return ModelStatus(**model, processes=processes, handlers=handlers)
