"""Fails in the way that its input names."""

from collections.abc import AsyncIterator

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.errors import InferenceError, MLServerError, ModelParametersMissing
from mlserver.types import InferenceRequest, InferenceResponse


class Broken(MLModel):
    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        self._fail(payload)
        return InferenceResponse(model_name=self.name, outputs=[])

    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        async for payload in payloads:
            yield InferenceResponse(model_name=self.name, outputs=[StringCodec.encode_output("output", ["one"])])
            self._fail(payload)

    def _fail(self, payload: InferenceRequest) -> None:
        [kind] = StringCodec.decode_input(payload.inputs[0])
        if kind == "inference":
            raise InferenceError("the tensors do not fit")
        if kind == "parameters":
            raise ModelParametersMissing(self.name)
        if kind == "status":
            raise MLServerError("come back later", 422)
        if kind == "value":
            raise ValueError("no such value")
