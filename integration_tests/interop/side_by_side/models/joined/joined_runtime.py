"""Joins the requests of a stream: says how many there are at each, and all of them at the end."""

from collections.abc import AsyncIterator

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Joined(MLModel):
    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        texts: list[str] = []
        async for payload in payloads:
            texts += StringCodec.decode_input(payload.inputs[0])
            yield self._response(payload, [str(len(texts))])
            if texts[-1] == "enough":
                return
        yield self._response(payload, texts)

    def _response(self, payload: InferenceRequest, texts: list[str]) -> InferenceResponse:
        output = StringCodec.encode_output("output", texts)
        return InferenceResponse(id=payload.id, model_name=self.name, outputs=[output])
