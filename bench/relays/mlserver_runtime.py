"""An MLServer runtime that relays a provider's stream; copied beside MLServer's settings, run in its environment.

Written as an MLServer user would for speed: aiohttp, orjson, one response a chunk.
"""

from collections.abc import AsyncIterator

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

    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        async for payload in payloads:
            prompt = payload.inputs[0].data[0]
            if isinstance(prompt, bytes):  # over gRPC
                prompt = prompt.decode()
            body = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": prompt}]}
            async with self._session.post(self.settings.parameters.uri, json=body) as response:
                async for line in response.content:
                    if line.startswith(b"data: {"):
                        for choice in orjson.loads(line[6:])["choices"]:
                            text = choice["delta"].get("content")
                            if text:
                                yield self._response(text)

    def _response(self, text: str) -> InferenceResponse:
        output = ResponseOutput(name="text", shape=[1, 1], datatype="BYTES", data=[text.encode()])
        return InferenceResponse(model_name=self.name, outputs=[output])
