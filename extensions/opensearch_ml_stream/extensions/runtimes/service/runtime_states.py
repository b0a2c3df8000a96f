"""What the repository and the metadata of V2 say of runtimes: what their keeper has last written."""

from collections.abc import Mapping, Sequence
from typing import Any

from opensearch_ml_stream.connectors.documents import read_model
from opensearch_ml_stream.extensions.runtimes.protocol.urls import find_runtime
from opensearch_ml_stream.extensions.runtimes.service import runtime_errors
from opensearch_ml_stream.extensions.runtimes.service.runtime_models import RuntimeModels
from opensearch_ml_stream.extensions.runtimes.service.status import ModelStatus
from opensearch_ml_stream.plugin.registry.stored_documents import Json

_STATES = {"READY": "READY", "LOADING": "LOADING"}  # MLServer's; any other is UNAVAILABLE


def runtime_metadata(
    name: str, versions: Sequence[str], status: ModelStatus, parameters: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return a runtime's metadata; `versions` are those of the store, `parameters` ours."""
    return {
        "name": name,
        "versions": versions if status.version is None else [status.version],
        "platform": status.platform or "",
        "inputs": status.inputs,
        "outputs": status.outputs,
        "parameters": {**status.parameters, **parameters},
    }


def check_runtime(runtimes: RuntimeModels, model_id: str, source: Json) -> None:
    """Return for a remote model, or a runtime that can be called; raise what a call of any other would."""
    connector = read_model(source).connector
    runtime = None if connector is None else find_runtime(model_id, connector)
    if runtime is None:
        return
    status = runtimes.current().get(runtime)
    if status is None:
        raise runtime_errors.unknown_model(runtime)
    if not _is_callable(status):
        raise runtime_errors.not_callable(runtime, status)


def indexed_runtime(runtimes: RuntimeModels, hit: Json) -> Json:
    """Return what the repository's index says of a hit that is a runtime; nothing for a remote model.

    The document tells which it is: its inline connector's URL.
    """
    source = hit["_source"]
    if not hit["_id"].startswith("runtime-"):
        return {}
    connector = read_model(source).connector
    runtime = None if connector is None else find_runtime(hit["_id"], connector)
    status = None if runtime is None else runtimes.current().get(runtime)
    if status is None:
        return {} if runtime is None else {"state": "UNAVAILABLE", "reason": "not on this server"}
    version = {} if status.version is None else {"version": status.version}
    state = "READY" if _is_callable(status) else _STATES.get(status.state, "UNAVAILABLE")
    return {**version, "state": state, "reason": status.reason}


def _is_callable(status: ModelStatus) -> bool:
    return status.state != "UNLOADED" and any(process.ready for process in status.processes)
