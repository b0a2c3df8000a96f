"""`/generate_stream`, as Hugging Face TGI and others serve it: server-sent events in the dialect of the server.

TGI's own events are read by `providers.text_generation_inference`.
"""

from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.provider import Interface, Provider, WholeResponse
from opensearch_ml_stream.connectors.providers.detected_dialect import DetectedDialect
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

GENERATE_STREAM = StreamSpec(
    name="huggingface/generate_stream",
    # TGI streams at /generate_stream, which ignores `stream`, and at its root if `stream` is set.
    enable=Enable(body={"stream": True}, url=(("/generate", "/generate_stream"),)),
    framing=SSEFraming,
    reader=DetectedDialect,
)

_WHOLE = WholeResponse(
    lambda response: "generated_text" in response and "token" not in response,
    lambda response: [{**response, "token": {"text": response["generated_text"]}}],
)

PROVIDER = Provider(
    interfaces=(Interface((GENERATE_STREAM.name,), GENERATE_STREAM, (r"/generate(_stream)?\?",), _WHOLE),)
)
