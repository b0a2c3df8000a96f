"""Cloudflare Workers AI, `/ai/run/MODEL`: server-sent events in the form of the model, told by the first of them."""

from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.providers.model_hosts.detected_dialect import DetectedDialect
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

WORKERS_AI = StreamSpec(
    name="cloudflare/ai/run",
    enable=Enable(body={"stream": True}),
    framing=SSEFraming,
    provider=DetectedDialect,
)
