"""The runtimes that come with the sidecar, under the names that a model-settings.json may have as `implementation`."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

_PACKAGE = "opensearch_ml_stream.runtimes"
SHORT_NAMES = {
    "huggingface": f"{_PACKAGE}.huggingface.HuggingFaceRuntime",
    "vllm": f"{_PACKAGE}.vllm.VLLMRuntime",
    "llama-cpp": f"{_PACKAGE}.llama_cpp.LlamaCppRuntime",
}
# Other packages' runtimes, which are taken over where their package is not installed.
_TAKEN_OVER = {"mlserver_huggingface": "huggingface"}
_LOCAL_PACKAGE = "mlserver_llm_local"  # of Seldon's LLM module: `parameters.extra.backend` says which engine
_LOCAL_BACKENDS = {
    "vllm": "vllm",
    "transformers": "huggingface",
    "llama-cpp": "llama-cpp",
    "llama_cpp": "llama-cpp",
}


def resolve(implementation: str, extra: Mapping[str, Any] | None = None) -> str:
    """Return the import path of an implementation: a short name's, or the one given.

    `extra` is `parameters.extra` of the model's settings. ValueError for a backend of Seldon's local runtime that no
    shipped runtime has.
    """
    if implementation in SHORT_NAMES:
        return SHORT_NAMES[implementation]
    package = implementation.partition(".")[0]
    if package in _TAKEN_OVER and find_spec(package) is None:
        return SHORT_NAMES[_TAKEN_OVER[package]]
    if package == _LOCAL_PACKAGE and find_spec(package) is None:
        backend = (extra or {}).get("backend", "transformers")
        if backend not in _LOCAL_BACKENDS:
            raise ValueError(
                f"parameters.extra.backend [{backend}] is not supported; it is one of {', '.join(_LOCAL_BACKENDS)}"
            )
        return SHORT_NAMES[_LOCAL_BACKENDS[backend]]
    return implementation
