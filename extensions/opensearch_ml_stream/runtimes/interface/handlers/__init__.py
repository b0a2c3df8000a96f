"""Custom handlers, as `mlserver.handlers` has them."""

from typing import Any

from opensearch_ml_stream.runtimes.interface.alias import INSTALL
from opensearch_ml_stream.runtimes.interface.handlers.custom import custom_handler, get_custom_handlers


def __getattr__(name: str) -> Any:
    if name in ("DataPlane", "ModelRepositoryHandlers"):
        raise ImportError(f"mlserver.handlers.{name} needs MLServer itself: {INSTALL}", name="mlserver")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["custom_handler", "get_custom_handlers"]
