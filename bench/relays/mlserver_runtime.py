"""An MLServer runtime that relays a provider; copied beside MLServer's settings, run in its environment.

Written as an MLServer user would for speed: aiohttp, orjson, one response a chunk.
"""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson
from mlserver import MLModel
from mlserver.types import InferenceRequest, InferenceResponse, ResponseOutput


class Relay(MLModel):  # type: ignore[misc]
    async def load(self) -> bool:
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        return True

    async def unload(self) -> bool:
        await self._session.close()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """A whole chat completion of the input `prompt`, or the embeddings of the texts of `documents`."""
        texts = [each.decode() if isinstance(each, bytes) else each for each in payload.inputs[0].data]
        if payload.inputs[0].name == "prompt":
            completion = await self._post(self._chat, {"messages": [{"role": "user", "content": texts[0]}]})
            return self._response(completion["choices"][0]["message"]["content"])
        embeddings = await self._post(self._chat.replace("chat/completions", "embeddings"), {"input": texts})
        rows = [each["embedding"] for each in embeddings["data"]]
        data = [value for row in rows for value in row]
        output = ResponseOutput(name="embeddings", shape=[len(rows), len(rows[0])], datatype="FP64", data=data)
        return InferenceResponse(model_name=self.name, outputs=[output])

    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        async for payload in payloads:
            prompt = payload.inputs[0].data[0]
            if isinstance(prompt, bytes):  # over gRPC
                prompt = prompt.decode()
            body = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": prompt}]}
            async with self._session.post(self._chat, json=body) as response:
                async for line in response.content:
                    if line.startswith(b"data: {"):
                        for choice in orjson.loads(line[6:])["choices"]:
                            text = choice["delta"].get("content")
                            if text:
                                yield self._response(text)

    @property
    def _chat(self) -> str:
        return str(self.settings.parameters.uri)

    async def _post(self, url: str, body: dict[str, object]) -> Any:
        async with self._session.post(url, json={"model": "bench", **body}) as response:
            return orjson.loads(await response.read())

    def _response(self, text: str) -> InferenceResponse:
        output = ResponseOutput(name="text", shape=[1, 1], datatype="BYTES", data=[text.encode()])
        return InferenceResponse(model_name=self.name, outputs=[output])
