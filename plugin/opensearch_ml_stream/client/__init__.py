"""Streams for people who already hold an opensearch-py client: its hosts, auth and TLS are used as they are."""

from opensearch_ml_stream.client.async_stream import async_predict_stream
from opensearch_ml_stream.client.ml_client import StreamingMLClient
from opensearch_ml_stream.client.response_chunks import Chunk, StreamError
from opensearch_ml_stream.client.sync_stream import predict_stream

__all__ = ["Chunk", "StreamError", "StreamingMLClient", "async_predict_stream", "predict_stream"]
