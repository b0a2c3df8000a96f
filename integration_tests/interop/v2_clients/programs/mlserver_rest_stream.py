"""The client of MLServer's streaming example, over REST for a stream. Runs in MLServer's own environment."""

from pathlib import Path

import httpx
from httpx_sse import connect_sse
from mlserver import types
from mlserver.codecs import StringCodec

inference_request = types.InferenceRequest.model_validate_json(Path("generate-request.json").read_text())

with (
    httpx.Client() as client,
    connect_sse(
        client,
        "POST",
        "http://localhost:8080/v2/models/text-model/generate_stream",
        json=inference_request.model_dump(),
    ) as event_source,
):
    for sse in event_source.iter_sse():
        response = types.InferenceResponse.model_validate_json(sse.data)
        print(StringCodec.decode_output(response.outputs[0]))
