"""Many callers of an embedding model with batching, over a provider that counts its calls."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
from integration_tests.support.connector_bodies import blueprint_connector
from integration_tests.support.fake_provider import FakeProvider, Request, Script, json_response
from integration_tests.support.sidecars import Sidecar

MODEL = "text-embedding-3-small"


def embedded(request: Request) -> Script:
    """Each text's embedding is its length; each character is a token."""
    texts = request.json()["input"]
    tokens = sum(map(len, texts))
    return json_response(
        {
            "object": "list",
            "data": [
                {"object": "embedding", "index": index, "embedding": [float(len(text)), 0.5]}
                for index, text in enumerate(texts)
            ],
            "model": request.json()["model"],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
    )


def refusing(status: int, marked: str = "bad", **headers: str) -> Callable[[Request], Script]:
    """A provider that refuses a call with a text that has `marked` in it, in words that repeat the texts."""

    def respond(request: Request) -> Script:
        texts = request.json()["input"]
        if any(marked in text for text in texts):
            return json_response({"error": f"cannot embed {texts}"}, status, **headers)
        return embedded(request)

    return respond


def embedding_connector(provider: FakeProvider, model: str = MODEL) -> dict[str, Any]:
    return blueprint_connector("openai-embedding", provider.url, model=model)


def predict_path(model_id: str) -> str:
    return f"/_plugins/_ml/models/{model_id}/_predict"


class Callers:
    """Callers of one model, each with a connection of its own."""

    def __init__(self, sidecar: Sidecar, provider: FakeProvider, model_id: str) -> None:
        self.provider = provider
        self.model_id = model_id
        self._sidecar = sidecar

    async def post(self, path: str, body: Any, key: str = "") -> httpx.Response:
        headers = {"x-api-key": key} if key else {}
        # Without TLS, whose certificates would take more time to read than all else.
        async with httpx.AsyncClient(base_url=self._sidecar.url, timeout=60, headers=headers, verify=False) as client:
            return await client.post(path, json=body)

    async def embed(self, *texts: str, key: str = "", **body: Any) -> httpx.Response:
        return await self.post(predict_path(self.model_id), {"text_docs": texts, **body}, key)

    def start(self, *texts: str, **more: Any) -> asyncio.Task[httpx.Response]:
        return asyncio.create_task(self.embed(*texts, **more))

    @property
    def texts(self) -> list[list[str]]:
        """Those of each call of the provider."""
        return [request.json()["input"] for request in self.provider.requests]


@asynccontextmanager
async def callers_of(
    sidecar: Sidecar,
    max_docs: int,
    script: Script | Callable[[Request], Script] = embedded,
    max_wait_ms: int = 1000,  # the longest; a test fills its calls, and none waits for so long
    **fields: Any,
) -> AsyncIterator[Callers]:
    """Callers of a new model whose provider plays the script; `fields` are the model's own, `_sidecar` among them."""
    settings = {"batching": {"max_docs": max_docs, "max_wait_ms": max_wait_ms}, **fields.pop("_sidecar", {})}
    async with FakeProvider(script) as provider:
        connector = embedding_connector(provider)
        model_id = await asyncio.to_thread(sidecar.create_model, connector, _sidecar=settings, **fields)
        yield Callers(sidecar, provider, model_id)


def lengths(response: httpx.Response) -> list[float]:
    """The first number of each row of a good response."""
    assert response.status_code == 200, response.text
    [result] = response.json()["inference_results"]
    return [tensor["data"][0] for tensor in result["output"]]


def statuses(responses: Sequence[httpx.Response]) -> list[int]:
    return sorted(response.status_code for response in responses)
