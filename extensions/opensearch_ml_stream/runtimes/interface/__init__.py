"""What a model is written against: the names, fields, defaults and behaviours of MLServer's Python package.

Standard library only. Where `mlserver` is not installed, `import mlserver` gives this package (see `alias`).
"""

from typing import Any

from opensearch_ml_stream.runtimes.interface.alias import INSTALL
from opensearch_ml_stream.runtimes.interface.metrics import log, register
from opensearch_ml_stream.runtimes.interface.model import MLModel
from opensearch_ml_stream.runtimes.interface.settings import ModelSettings, Settings, __version__


def __getattr__(name: str) -> Any:
    if name == "MLServer":
        raise ImportError(f"mlserver.{name} needs MLServer itself: {INSTALL}", name="mlserver")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["MLModel", "ModelSettings", "Settings", "__version__", "log", "register"]
