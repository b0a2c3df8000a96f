"""Joins the texts of all requests of a stream: says them when one is `tell`, and when there are no more."""

import asyncio
import sys
from collections.abc import AsyncIterator

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Joining(MLModel):
    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        texts: list[str] = []
        how = "by its client"
        try:
            async for payload in payloads:
                text = StringCodec.decode_input(payload.inputs[0])[0]
                texts.append(text[:10])
                if text in ("tell", "wait", "leave"):
                    yield self._response(texts)
                if text == "wait":
                    await asyncio.Event().wait()
                if text == "leave":
                    return
                if text == "raise":
                    raise ValueError("worn out")
            how = "by itself"
            yield self._response(texts)
        finally:
            sys.stdout.write(f"ended {how} after {len(texts)} requests\n")
            sys.stdout.flush()

    def _response(self, texts: list[str]) -> InferenceResponse:
        outputs = [StringCodec.encode_output("output", [" ".join(texts)])]
        return InferenceResponse(model_name=self.name, outputs=outputs)
