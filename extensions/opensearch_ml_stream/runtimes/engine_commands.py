"""Commands that start the servers of engines (read: vLLM 0.33, llama-cpp-python 0.3.36).

The server's key is passed in its environment, which lists of processes do not show.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opensearch_ml_stream.runtimes.engine_settings import EMBEDDINGS, EngineSettings
from opensearch_ml_stream.runtimes.shipped_runtimes import LLAMA_CPP, VLLM

HOST = "127.0.0.1"
_MIDDLEWARE_FOLDER = str(Path(__file__).parent / "engine_middleware")
_MIDDLEWARE = "key_for_every_route.KeyForEveryRoute"
_LLAMA_CPP_DEFAULTS = {"n_ctx": 4096, "logits_all": False, "verbose": False}
_OWN = frozenset({
    "api_key", "config", "config_file", "host", "interrupt_requests", "middleware", "model_alias", "port", "root_path",
    "served_model_name", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "uds",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Command:
    """A command, its variables beside those of this process, and the path of the server's health check.

    `unset` are variables that would override the command.
    """

    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    health: str
    unset: tuple[str, ...] = ()


def engine_command(engine: str, name: str, settings: EngineSettings, port: int, key: str) -> Command:
    """Return the command for the model `name`; ValueError for arguments that this server sets itself."""
    if own := sorted(_OWN & settings.arguments.keys()):
        raise ValueError(f"parameters.extra may not have {', '.join(own)}: how its server is reached is not set there")
    return _COMMANDS[engine](name, settings, port, key)


def _vllm(name: str, settings: EngineSettings, port: int, key: str) -> Command:
    arguments = dict(settings.arguments)
    importable = filter(None, (_MIDDLEWARE_FOLDER, os.environ.get("PYTHONPATH")))
    variables = {"VLLM_API_KEY": key, "PYTHONPATH": os.pathsep.join(importable)}
    if token := arguments.pop("hf_token", None):
        variables["HF_TOKEN"] = str(token)
    if settings.model_type == EMBEDDINGS:
        arguments.setdefault("runner", "pooling")  # otherwise a decoder would generate text
    command = (
        sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", settings.model, "--host", HOST, "--port", str(port),
        "--served-model-name", name, "--disable-uvicorn-access-log", "--middleware", _MIDDLEWARE,
        *_options(arguments, _vllm_option),
    )  # fmt: skip
    return Command(command, variables, "/health")


def _llama_cpp(name: str, settings: EngineSettings, port: int, key: str) -> Command:
    arguments = {**_LLAMA_CPP_DEFAULTS, **settings.arguments}
    if settings.model_type == EMBEDDINGS:
        arguments.setdefault("embedding", True)
    command = (
        sys.executable, "-m", "llama_cpp.server", "--model", settings.model, "--model_alias", name,
        "--interrupt_requests", "false", *_options(arguments, _llama_cpp_option),
    )  # fmt: skip
    # HOST and PORT override the arguments of these names. There is no health check; this path needs no key.
    return Command(command, {"HOST": HOST, "PORT": str(port), "API_KEY": key}, "/openapi.json", ("CONFIG_FILE",))


_COMMANDS: Mapping[str, Callable[[str, EngineSettings, int, str], Command]] = {VLLM: _vllm, LLAMA_CPP: _llama_cpp}


def _options(arguments: Mapping[str, Any], option: Callable[[str, Any], list[str]]) -> list[str]:
    return [part for name, value in arguments.items() if value is not None for part in option(name, value)]


def _vllm_option(name: str, value: Any) -> list[str]:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    return [f"--{flag}", *_texts(value)]


def _llama_cpp_option(name: str, value: Any) -> list[str]:
    return [f"--{name}", *_texts(value)]


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [value if isinstance(value, str) else json.dumps(value)]
