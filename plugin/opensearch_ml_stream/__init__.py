"""The public face: what a program that already holds an opensearch-py client needs.

The package's three rooms are separate source roots, so the path is extended over all of them; names are
resolved on first use, so importing a room never imports the rest.
"""

from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING

__path__ = extend_path(__path__, __name__)

if TYPE_CHECKING:
    from opensearch_ml_stream.plugin.client import Chunk as Chunk
    from opensearch_ml_stream.plugin.client import StreamError as StreamError
    from opensearch_ml_stream.plugin.client import StreamingMLClient as StreamingMLClient
    from opensearch_ml_stream.plugin.client import async_predict_stream as async_predict_stream
    from opensearch_ml_stream.plugin.client import predict_stream as predict_stream

__all__ = ["Chunk", "StreamError", "StreamingMLClient", "async_predict_stream", "predict_stream"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("opensearch_ml_stream.plugin.client"), name)
