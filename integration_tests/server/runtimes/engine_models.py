"""A server with models that the servers of engines run: the engines' own, made tiny, or the stand-ins'."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
from integration_tests.server.runtimes.runtime_server import RuntimeServer, serving_models
from integration_tests.support.conditions import eventually

from tests.runtimes.shipped import tiny_models

STAND_INS = Path(__file__).parent / "engines"
PACKAGES = {"vllm": "vllm", "llama-cpp": "llama_cpp"}
EXTRA: dict[str, dict[str, Any]] = {
    "vllm": {"model": ".", "max_model_len": tiny_models.CONTEXT, "enforce_eager": True, "dtype": "float32"},
    "llama-cpp": {"model": "model.gguf", "n_ctx": tiny_models.CONTEXT},
}
_WRITE = {"vllm": tiny_models.hugging_face_folder, "llama-cpp": tiny_models.gguf_file}
START_SECONDS = 300  # vLLM, on a machine that has other work


def is_installed(engine: str) -> bool:
    return find_spec(PACKAGES[engine]) is not None


def write_model(
    models: Path, name: str, engine: str, write: Callable[[Path], None] | None = None, **extra: Any
) -> Path:
    """Write a model of the engine, by `write` or as all are, and its settings; return its folder."""
    folder = models / name
    folder.mkdir(parents=True)
    if is_installed(engine):
        (write or _WRITE[engine])(folder)
    parameters = {"extra": {**EXTRA[engine], "llm_parameters": {"max_tokens": 16}, **extra}}
    settings = {"name": name, "implementation": engine, "parameters": parameters}
    (folder / "model-settings.json").write_text(json.dumps(settings))
    return folder


@contextmanager
def serving_engines(folder: Path, models: Path, *engines: str) -> Iterator[RuntimeServer]:
    """A server whose models of these engines, by the engines' names, are ready."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
        if not all(map(is_installed, PACKAGES)):
            patch.setenv("PYTHONPATH", str(STAND_INS))
        with serving_models(folder, models) as server:
            for engine in engines:
                eventually(partial(server.pid, engine), START_SECONDS)
            yield server


def predict(server: RuntimeServer, name: str, **parameters: Any) -> httpx.Response:
    return server.post(f"/models/runtime-{name}/_predict", parameters={"temperature": 0, **parameters})


def message(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    (choice,) = response.json()["inference_results"][0]["output"][0]["dataAsMap"]["choices"]
    return dict(choice["message"])


def stream(server: RuntimeServer, name: str, **parameters: Any) -> list[dict[str, Any]]:
    """The chunks of a stream, as far as they are JSON."""
    path = f"/_plugins/_ml/models/runtime-{name}/_predict/stream"
    body = {"parameters": {"temperature": 0, **parameters}}
    with server.sidecar.client.stream("POST", path, json=body) as response:
        lines = [line.removeprefix("data: ") for line in response.iter_lines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


def text_of(chunks: list[dict[str, Any]]) -> str:
    return "".join(data.get("content", "") or data.get("response", "") for data in map(data_of, chunks))


def data_of(chunk: dict[str, Any]) -> dict[str, Any]:
    return dict(chunk["inference_results"][0]["output"][0]["dataAsMap"])
