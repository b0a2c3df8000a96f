"""Load a model: read its settings, construct its class, call `load()`, describe it."""

import os
import sys
from importlib import import_module
from typing import Any

from opensearch_ml_stream.runtimes import shipped_runtimes
from opensearch_ml_stream.runtimes.host.failures import type_of


class CannotLoad(Exception):
    """The model cannot be loaded; the text has the exception and where to look."""

    def __init__(self, error: BaseException, where: str) -> None:
        super().__init__(f"{type_of(error)}: {error} ({where})")


def read_settings(folder: str, settings: dict[str, Any]) -> Any:
    """Build the ModelSettings of a model, as MLServer does from `model-settings.json` in `folder`."""
    source = os.path.join(folder, "model-settings.json")
    try:
        module = import_module("mlserver.settings")
        read = module.ModelSettings.model_validate({**settings, "_source": source})
        read.name = read.name or os.path.basename(folder)
        read.parameters = read.parameters or module.ModelParameters()
        read.parameters.uri = read.parameters.uri or folder
    except Exception as error:  # MLServer's ModelSettings, or ours, may raise anything
        raise CannotLoad(error, "model-settings.json") from error
    return read


def construct(folder: str, implementation: str, settings: Any) -> Any:
    """Import `implementation`, from `folder` or an installed distribution, and call it with the settings.

    `implementation` is `package.module.Class`, `package.module:Class`, or a name that `shipped_runtimes` knows.
    """
    sys.path.insert(0, folder)
    module_name, where = "", "model-settings.json: implementation"
    try:
        implementation = shipped_runtimes.resolve(implementation, settings.parameters.extra)
        module_name, _, class_name = implementation.replace(":", ".").rpartition(".")
        if not module_name:
            raise ValueError(f"'{implementation}' names no module and class, such as 'model.MyModel'")
        model_class = getattr(import_module(module_name), class_name)
    except ModuleNotFoundError as error:
        if error.name and not f"{module_name}.".startswith(f"{error.name}."):
            where = (
                f"imported by '{implementation}'; the interpreter is {sys.executable}; "
                "model-settings.json: implementation, parameters.environment_path"
            )
        raise CannotLoad(error, where) from error
    except (Exception, SystemExit) as error:
        raise CannotLoad(error, where) from error
    try:
        return model_class(settings)
    except (Exception, SystemExit) as error:
        raise CannotLoad(error, f"{implementation}(settings); model-settings.json: implementation") from error


async def load(model: Any) -> None:
    """Await the model's `load()`. CannotLoad if that raises or returns False."""
    try:
        loaded = await model.load()
        if loaded is False:
            raise RuntimeError("load() returned False")
    except (Exception, SystemExit) as error:
        raise CannotLoad(error, f"load() of {_class_name(model)}; model-settings.json: parameters") from error
    model.ready = True


def _class_name(model: Any) -> str:
    return f"{type(model).__module__}.{type(model).__qualname__}"


async def describe(model: Any) -> dict[str, Any]:
    """Return the model's metadata in the form of the `ready` event. CannotLoad if it raises."""
    try:
        metadata = await model.metadata()
    except Exception as error:
        raise CannotLoad(error, f"metadata() of {_class_name(model)}") from error
    return {
        "inputs": [tensor.model_dump() for tensor in metadata.inputs or []],
        "outputs": [tensor.model_dump() for tensor in metadata.outputs or []],
        "platform": metadata.platform or None,
        "versions": metadata.versions or [],
        "version": model.version,
    }
