"""Says its input again, a word at a time."""

from collections.abc import AsyncIterator

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.types import InferenceRequest, InferenceResponse, Parameters


class Words(MLModel):
    async def load(self) -> bool:
        self._suffix = self.settings.parameters.extra["suffix"]
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        texts = [text + self._suffix for text in StringCodec.decode_input(payload.inputs[0])]
        return self._response(texts, payload)

    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        async for payload in payloads:
            for number, word in enumerate(StringCodec.decode_input(payload.inputs[0])[0].split(" ")):
                yield self._response([f" {word}" if number else word], payload)

    def _response(self, texts: list[str], payload: InferenceRequest) -> InferenceResponse:
        return InferenceResponse(
            id=payload.id,
            model_name=self.name,
            model_version=self.version,
            parameters=Parameters(texts=len(texts)),
            outputs=[StringCodec.encode_output("output", texts)],
        )
