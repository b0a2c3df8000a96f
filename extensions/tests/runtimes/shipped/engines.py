"""A model of each shipped runtime, loaded, and how many steps its engine has made."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import sleep
from typing import Any

from opensearch_ml_stream.runtimes.shipped import resolve
from tests.runtimes.shipped import tiny_models

NAMES = ("huggingface", "vllm", "llama-cpp")
_PREPARE: Mapping[str, Callable[[Path], None]] = {
    "huggingface": tiny_models.hugging_face_folder,
    "vllm": tiny_models.hugging_face_folder,
    "llama-cpp": tiny_models.gguf_file,
}
_EXTRA: Mapping[str, dict[str, object]] = {
    "huggingface": {"model": "."},
    "vllm": {"model": ".", "max_model_len": tiny_models.CONTEXT},
    "llama-cpp": {"model": "model.gguf", "n_ctx": tiny_models.CONTEXT},
}


@dataclass
class Engine:
    """A loaded model of a runtime."""

    model: Any
    steps: Callable[[], int]
    is_stand_in: bool


@asynccontextmanager
async def engine(name: str, folder: Path, **extra: object) -> AsyncIterator[Engine]:
    """Load a tiny model with the runtime of that short name; unload it at the end."""
    _PREPARE[name](folder)
    tiny_models.write_settings(folder, name, **_EXTRA[name], **extra)
    model = runtime_class(name)(read_settings(folder))
    assert await model.load()
    try:
        yield Engine(model, _count_steps(name, model), _is_stand_in(name))
    finally:
        assert await model.unload()


def runtime_class(name: str) -> Any:
    """Return the class of a short name."""
    module, _, class_name = resolve(name).rpartition(".")
    return getattr(import_module(module), class_name)


def read_settings(folder: Path) -> Any:
    """Read a folder's model-settings.json as the process of a model does."""
    return import_module("mlserver").ModelSettings.parse_file(str(folder / "model-settings.json"))


def _is_stand_in(name: str) -> bool:
    package = import_module({"huggingface": "transformers", "llama-cpp": "llama_cpp"}.get(name, name))
    return "stand_ins" in str(package.__file__)


def _count_steps(name: str, model: Any) -> Callable[[], int]:
    if name == "vllm":
        return lambda: int(model._engine.steps)
    steps = []

    def count(*_: object) -> None:
        steps.append(1)
        sleep(0.001)  # as an engine's own work, it leaves the interpreter to others

    if name == "huggingface":
        model._model.register_forward_hook(count)
        return lambda: len(steps)
    evaluate = model._llama.eval

    def counted(tokens: Any) -> None:
        count()
        evaluate(tokens)

    model._llama.eval = counted
    return lambda: len(steps)
