"""Settings of text models in `parameters` of a model-settings.json, also in the form of Seldon's local runtime."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHAT = "chat.completions"
EMBEDDINGS = "embeddings"
MODEL_TYPES = (CHAT, "completions", EMBEDDINGS)

_MODEL_NAMES = ("model", "pretrained_model", "model_path")  # ours and Seldon's, MLServer's, llama-cpp-python's
_OF_THE_SIDECAR = ("backend", "processes")
ALIASES = {
    "max_completion_tokens": "max_tokens",
    "max_new_tokens": "max_tokens",
    "repeat_penalty": "repetition_penalty",
    "stop_strings": "stop",
}


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The model (a name or a path), the type of its calls, the engine's arguments, and parameters of each call."""

    model: str
    model_type: str
    arguments: dict[str, Any]
    llm_parameters: dict[str, Any]


def read_engine_settings(extra: Mapping[str, Any] | None, uri: str | None, folder: Path | None) -> EngineSettings:
    """Read `parameters.extra`; `uri` is that of `parameters`, `folder` the model's. ValueError says what is wrong.

    A relative path of a model is one in the model's folder.
    """
    extra = dict(extra or {})
    if extra.get("prompt_utils"):
        raise ValueError("parameters.extra.prompt_utils is not supported; the model's own chat template is used")
    config = extra.get("config")
    if isinstance(config, Mapping):
        extra = {**(config.get("model_settings") or {}), "model_type": config.get("model_type", CHAT)}
    for name in _OF_THE_SIDECAR:
        extra.pop(name, None)
    model_type = extra.pop("model_type", CHAT)
    if model_type not in MODEL_TYPES:
        raise ValueError(f"parameters.extra.model_type [{model_type}] is not supported; use {', '.join(MODEL_TYPES)}")
    parameters: dict[str, Any] = {**extra.pop("default_generate_kwargs", {}), **extra.pop("llm_parameters", {})}
    llm_parameters = {ALIASES.get(name, name): value for name, value in parameters.items()}
    model = next((given for name in _MODEL_NAMES if (given := extra.pop(name, None))), uri)
    if not isinstance(model, str) or not model:
        raise ValueError("parameters.uri or parameters.extra.model must name the model")
    inside = None if folder is None else folder / model
    return EngineSettings(str(inside) if inside and inside.exists() else model, model_type, extra, llm_parameters)
