"""Streaming predictions through an existing opensearch-py client, whose hosts, login and TLS are used as they are.

`predict_stream` for `OpenSearch`, `async_predict_stream` for `AsyncOpenSearch`, `StreamingMLClient` also to make
connectors and models from blueprints.

Each is loaded when it is first used: the server reads blueprints by this package, and needs neither opensearch-py nor
the HTTP clients for that, which take 20 MiB.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opensearch_ml_stream.client.async_stream import async_predict_stream
    from opensearch_ml_stream.client.ml_client import StreamingMLClient
    from opensearch_ml_stream.client.response_chunks import Chunk, StreamError
    from opensearch_ml_stream.client.sync_stream import predict_stream

__all__ = ["Chunk", "StreamError", "StreamingMLClient", "async_predict_stream", "predict_stream"]

_MODULES = {
    "Chunk": "response_chunks",
    "StreamError": "response_chunks",
    "StreamingMLClient": "ml_client",
    "async_predict_stream": "async_stream",
    "predict_stream": "sync_stream",
}


def __getattr__(name: str) -> object:
    """Load what is asked for (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
