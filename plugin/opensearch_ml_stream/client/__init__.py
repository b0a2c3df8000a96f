"""Predictions through an existing opensearch-py client, whose hosts, login and TLS are used as they are.

`StreamingMLClient` for `OpenSearch`, `AsyncStreamingMLClient` for `AsyncOpenSearch`: streams, whole responses,
embeddings, and connectors and models from blueprints; `predict_stream` and `async_predict_stream` for a stream alone.
What fails raises a `SidecarError`.

Each is loaded when it is first used: the server reads blueprints by this package, and needs neither opensearch-py nor
the HTTP clients for that, which take 20 MiB.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opensearch_ml_stream.client.async_client import AsyncStreamingMLClient, async_predict_stream
    from opensearch_ml_stream.client.errors import (
        ConnectionFailed,
        ProviderFailed,
        RequestRefused,
        SidecarError,
        StreamTruncated,
    )
    from opensearch_ml_stream.client.response_chunks import Chunk
    from opensearch_ml_stream.client.sync_client import StreamingMLClient, predict_stream

__all__ = [
    "AsyncStreamingMLClient",
    "Chunk",
    "ConnectionFailed",
    "ProviderFailed",
    "RequestRefused",
    "SidecarError",
    "StreamTruncated",
    "StreamingMLClient",
    "async_predict_stream",
    "predict_stream",
]

_MODULES = {
    "AsyncStreamingMLClient": "async_client",
    "Chunk": "response_chunks",
    "ConnectionFailed": "errors",
    "ProviderFailed": "errors",
    "RequestRefused": "errors",
    "SidecarError": "errors",
    "StreamTruncated": "errors",
    "StreamingMLClient": "sync_client",
    "async_predict_stream": "async_client",
    "predict_stream": "sync_client",
}


def __getattr__(name: str) -> object:
    """Load what is asked for (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
