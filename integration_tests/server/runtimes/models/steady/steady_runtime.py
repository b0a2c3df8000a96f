"""Counts as `count 200 0.01` says, undisturbed by what happens to other models."""

import asyncio
from collections.abc import AsyncIterator

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Steady(MLModel):
    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        return self._say("steady")

    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        async for payload in payloads:
            _, count, pause = StringCodec.decode_input(payload.inputs[0])[0].split(" ")
            for number in range(int(count)):
                await asyncio.sleep(float(pause))
                yield self._say(f"{number} ")

    def _say(self, text: str) -> InferenceResponse:
        output = StringCodec.encode_output("output", [text], use_bytes=False)
        return InferenceResponse(model_name=self.name, outputs=[output])
