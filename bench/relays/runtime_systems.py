"""Systems that run a runtime: MLServer, and this sidecar with `serve --models`.

Here the runtime meets this project's types in the sidecar's interpreter, or MLServer's own in MLServer's environment.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.relays.peers import command_of
from bench.relays.processes import free_port, started
from bench.relays.systems import V2_BODY, V2_PATH, Ask, Place, Target, sidecar_process, wait_for
from bench.traffic.whole_bodies import CHAT, DOCUMENTS, QUESTION, documents


@dataclass(frozen=True, slots=True)
class Runtime:
    """A file beside this one, and its class."""

    file: str
    name: str


GENERATING = Runtime("generating_runtime", "Generator")
RELAYING = Runtime("mlserver_runtime", "Relay")


def mlserver(place: Place) -> AbstractContextManager[Target]:
    """MLServer with a runtime that relays the provider's chunks."""
    return mlserver_with(place, RELAYING)


@contextmanager
def mlserver_with(place: Place, runtime: Runtime) -> Iterator[Target]:
    """MLServer in one process with the runtime, measured at its infer_stream route."""
    port, grpc_port = free_port(), free_port()
    settings: dict[str, object] = {"host": "127.0.0.1", "http_port": port, "grpc_port": grpc_port}
    settings |= {"parallel_workers": 0, "gzip_enabled": False, "debug": False, "metrics_port": free_port()}
    (place.folder / "settings.json").write_text(json.dumps(settings))
    _write_model(place.folder, place, runtime)
    log = place.folder / "mlserver.log"
    command = [str(command_of("mlserver")), "start", "."]
    # The command is run by its path: the runtime lies in the working folder.
    with started(command, place.cpus.relay, log, {"PYTHONPATH": str(place.folder)}, place.folder) as process:
        wait_for(f"http://127.0.0.1:{port}/v2/models/bench/ready", log, process)
        yield Target(port, V2_PATH, V2_BODY, "", process.pid, grpc_port=grpc_port, asks=_asks())


def _asks() -> dict[str, Ask]:
    def tensor(name: str, texts: list[str]) -> Ask:
        document = {"name": name, "shape": [len(texts)], "datatype": "BYTES", "data": texts}
        return Ask("/v2/models/bench/infer", json.dumps({"inputs": [document]}))

    return {CHAT: tensor("prompt", [QUESTION]), **{what: tensor("documents", documents(what)) for what in DOCUMENTS}}


@contextmanager
def sidecar_with(
    place: Place, runtime: Runtime, in_environment: bool = False, cpus: frozenset[int] | None = None
) -> Iterator[Target]:
    """This sidecar of one worker with the runtime in a process of its own, both on the relay's CPU or on `cpus`.

    `in_environment` runs the runtime where MLServer is installed, with MLServer's types.
    """
    port, grpc_port = free_port(), free_port()
    models = place.folder / "models"
    shutil.rmtree(models, ignore_errors=True)
    _write_model(models / "bench", place, runtime, in_environment)
    arguments = ("--models", str(models), "--grpc-port", str(grpc_port))
    with sidecar_process(place, cpus or place.cpus.relay, port, arguments=arguments) as process:
        wait_for(f"http://127.0.0.1:{port}/v2/models/bench/ready", place.folder / "sidecar.log", process)
        yield Target(port, V2_PATH, V2_BODY, "", process.pid, grpc_port=grpc_port)


def predict_stream(target: Target) -> Target:
    """The same model by `_predict/stream`."""
    path = "/_plugins/_ml/models/runtime-bench/_predict/stream"
    return Target(target.port, path, '{"parameters":{"prompt":"PROMPT"}}', '"is_last":true', target.pid)


def _write_model(folder: Path, place: Place, runtime: Runtime, in_environment: bool = False) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).with_name(f"{runtime.file}.py"), folder)
    parameters = {"uri": f"http://127.0.0.1:{place.provider}/v1/chat/completions"}
    if in_environment:
        parameters["environment_path"] = str(command_of("mlserver").parents[1])
    model = {"name": "bench", "implementation": f"{runtime.file}.{runtime.name}", "parameters": parameters}
    (folder / "model-settings.json").write_text(json.dumps(model))
