"""Streaming predictions through an existing opensearch-py client, whose hosts, login and TLS are used as they are.

`predict_stream` for `OpenSearch`, `async_predict_stream` for `AsyncOpenSearch`, `StreamingMLClient` also to make
connectors and models from blueprints.
"""

from opensearch_ml_stream.client.async_stream import async_predict_stream
from opensearch_ml_stream.client.ml_client import StreamingMLClient
from opensearch_ml_stream.client.response_chunks import Chunk, StreamError
from opensearch_ml_stream.client.sync_stream import predict_stream

__all__ = ["Chunk", "StreamError", "StreamingMLClient", "async_predict_stream", "predict_stream"]
