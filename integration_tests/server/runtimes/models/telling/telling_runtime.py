"""Tells what it was asked; streams the words of its first input, numbered."""

import json
from collections.abc import AsyncIterator
from typing import Any

from mlserver import MLModel
from mlserver.types import InferenceRequest, InferenceResponse, Parameters, ResponseOutput


class Telling(MLModel):
    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        asked = {tensor.name: [_text(one) for one in tensor.data] for tensor in payload.inputs}
        parameters = payload.parameters.model_dump() if payload.parameters else {}
        headers = parameters.pop("headers", None) or {}
        told = json.dumps(
            {"asked": asked, "parameters": parameters, "x-mine": headers.get("x-mine"), "seen": list(headers)}
        )
        return self._respond(told, len(asked), headers={"x-told-by": "telling"})

    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        async for payload in payloads:
            words = _text(payload.inputs[0].data[0]).split()
            for number, word in enumerate(words):
                last = {"finish_reason": "length", "usage": {"prompt_tokens": 3, "completion_tokens": len(words)}}
                yield self._respond(f"{word} ", number, **(last if number + 1 == len(words) else {}))

    def _respond(self, text: str, number: int, **parameters: Any) -> InferenceResponse:
        outputs = [
            ResponseOutput(name="told", shape=[1], datatype="BYTES", data=[text]),
            ResponseOutput(name="number", shape=[1], datatype="INT64", data=[number]),
        ]
        told = Parameters(**parameters) if parameters else None
        return InferenceResponse(model_name=self.name, parameters=told, outputs=outputs)


def _text(element: Any) -> str:
    return element.decode() if isinstance(element, bytes) else str(element)
