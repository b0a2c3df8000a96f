"""Runs in MLServer's own environment: a model that responds with the prompt, a word at a time."""

from collections.abc import AsyncIterator

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.types import InferenceRequest, InferenceResponse


class TextModel(MLModel):  # type: ignore[misc]
    """`fail` as the last word breaks the stream off."""

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        return self._response(_prompt(payload))

    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        async for payload in payloads:
            for word in _prompt(payload).split(" "):
                if word == "fail":
                    raise RuntimeError("the model failed")
                yield self._response(word)

    def _response(self, text: str) -> InferenceResponse:
        output = StringCodec.encode_output("output", [text])
        return InferenceResponse(model_name=self.name, outputs=[output])


def _prompt(payload: InferenceRequest) -> str:
    return str(StringCodec.decode_input(payload.inputs[0])[0])
