"""A model of the runtime for transformers, loaded, and how many steps it has made."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import sleep
from typing import Any

from opensearch_ml_stream.runtimes.shipped_runtimes import resolve
from tests.runtimes.shipped import tiny_models

NAME = "huggingface"


@dataclass
class Engine:
    """A loaded model of a runtime."""

    model: Any
    steps: Callable[[], int]
    is_stand_in: bool


@asynccontextmanager
async def engine(folder: Path, **extra: object) -> AsyncIterator[Engine]:
    """Load a tiny model; unload it at the end."""
    tiny_models.hugging_face_folder(folder)
    tiny_models.write_settings(folder, NAME, **{"model": ".", **extra})
    model = runtime_class()(read_settings(folder))
    assert await model.load()
    try:
        yield Engine(model, _count_steps(model), "stand_ins" in str(import_module("transformers").__file__))
    finally:
        assert await model.unload()


def runtime_class() -> Any:
    """Return the runtime's class."""
    module, _, class_name = resolve(NAME).rpartition(".")
    return getattr(import_module(module), class_name)


def read_settings(folder: Path) -> Any:
    """Read a folder's model-settings.json as the process of a model does."""
    return import_module("mlserver").ModelSettings.parse_file(str(folder / "model-settings.json"))


def _count_steps(model: Any) -> Callable[[], int]:
    steps = []

    def count(*_: object) -> None:
        steps.append(1)
        sleep(0.001)  # as an engine's own work, it leaves the interpreter to others

    model._model.register_forward_hook(count)
    return lambda: len(steps)
