"""Adaptive batching: each element comes back with how many were predicted together."""

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Batched(MLModel):
    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        texts = StringCodec.decode_input(payload.inputs[0])
        output = StringCodec.encode_output("output", [f"{text} of {len(texts)}" for text in texts], use_bytes=False)
        return InferenceResponse(model_name=self.name, outputs=[output])
