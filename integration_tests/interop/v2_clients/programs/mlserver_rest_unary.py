"""The client of MLServer's streaming example, over REST for a whole response. Runs in MLServer's own environment."""

from pathlib import Path

import httpx
from mlserver import types
from mlserver.codecs import StringCodec

inference_request = types.InferenceRequest.model_validate_json(Path("generate-request.json").read_text())

with httpx.Client() as client:
    answer = client.post(
        "http://localhost:8080/v2/models/text-model/generate", json=inference_request.model_dump()
    ).raise_for_status()
    response = types.InferenceResponse.model_validate_json(answer.content)
    print(StringCodec.decode_output(response.outputs[0]))
