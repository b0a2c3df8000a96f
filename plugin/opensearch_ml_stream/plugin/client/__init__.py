"""Streams for people who already hold an opensearch-py client: its hosts, auth and TLS are used as they are."""

from opensearch_ml_stream.plugin.client.async_ import async_predict_stream
from opensearch_ml_stream.plugin.client.chunks import Chunk, StreamError
from opensearch_ml_stream.plugin.client.ml_client import StreamingMLClient
from opensearch_ml_stream.plugin.client.sync import predict_stream

__all__ = ["Chunk", "StreamError", "StreamingMLClient", "async_predict_stream", "predict_stream"]
