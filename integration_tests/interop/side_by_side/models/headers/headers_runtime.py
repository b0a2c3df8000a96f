"""Reads a header of the request and sets one of the response."""

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.types import InferenceRequest, InferenceResponse, Parameters


class Headers(MLModel):
    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        given = payload.parameters.headers if payload.parameters else {}
        said = (given or {}).get("x-said", "nothing")
        return InferenceResponse(
            model_name=self.name,
            outputs=[StringCodec.encode_output("output", [said])],
            parameters=Parameters(headers={"x-heard": said}),
        )
