"""The runtimes that come with the sidecar, by their names in `implementation` of a model-settings.json."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

VLLM = "vllm"
LLAMA_CPP = "llama-cpp"
ENGINES = (VLLM, LLAMA_CPP)  # engines with a server of their own, which runs the model
SHORT_NAMES = {"huggingface": "opensearch_ml_stream.runtimes.huggingface.HuggingFaceRuntime"}
# Runtimes of other packages, which ours replace if the package is not installed.
_TAKEN_OVER = {"mlserver_huggingface": "huggingface"}
_LOCAL_PACKAGE = "mlserver_llm_local"  # of Seldon's LLM module: `parameters.extra.backend` says which engine
_LOCAL_BACKENDS = {
    "vllm": VLLM,
    "transformers": "huggingface",
    "llama-cpp": LLAMA_CPP,
    "llama_cpp": LLAMA_CPP,
}


def find_engine(implementation: str, extra: Mapping[str, Any] | None = None) -> str | None:
    """Return the engine whose server runs the model, None for an implementation that our own process loads.

    `extra` is `parameters.extra` of the model's settings.
    """
    if _is_local(implementation):
        implementation = _LOCAL_BACKENDS.get((extra or {}).get("backend", ""), "")
    return implementation if implementation in ENGINES else None


def resolve(implementation: str, extra: Mapping[str, Any] | None = None) -> str:
    """Return the import path of an implementation without an engine: that of a short name, or the given one.

    ValueError for a backend of Seldon's local runtime that is not here.
    """
    if implementation in SHORT_NAMES:
        return SHORT_NAMES[implementation]
    package = implementation.partition(".")[0]
    if package in _TAKEN_OVER and find_spec(package) is None:
        return SHORT_NAMES[_TAKEN_OVER[package]]
    if _is_local(implementation):
        backend = (extra or {}).get("backend", "transformers")
        if backend not in _LOCAL_BACKENDS:
            raise ValueError(
                f"parameters.extra.backend [{backend}] is not supported; it is one of {', '.join(_LOCAL_BACKENDS)}"
            )
        return SHORT_NAMES[_LOCAL_BACKENDS[backend]]
    return implementation


def _is_local(implementation: str) -> bool:
    package = implementation.partition(".")[0]
    return package == _LOCAL_PACKAGE and find_spec(package) is None
