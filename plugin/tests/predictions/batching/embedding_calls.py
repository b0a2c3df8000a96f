"""Calls of an embedding provider that a test answers itself, one by one."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from opensearch_ml_stream.connectors.documents import read_connector, read_model
from opensearch_ml_stream.connectors.model_options import BatchingSettings, SidecarSettings
from opensearch_ml_stream.connectors.predict.inputs import TextDocsInput
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.embedding_batches import EmbeddingBatches
from tests.predictions.prediction_setup import EMBEDDING_URL, connector_body

EMBEDDING = {
    "request_body": '{"input": ${parameters.input}}',
    "pre_process_function": "connector.pre_process.openai.embedding",
    "post_process_function": "connector.post_process.openai.embedding",
}


def embedding_model(max_docs: int = 64, max_wait_ms: int = 5, **connector: Any) -> CompiledModel:
    stored = read_connector(connector_body(EMBEDDING_URL, action=EMBEDDING, **connector))
    settings = SidecarSettings(batching=BatchingSettings(max_docs, max_wait_ms))
    return CompiledModel("m", read_model({}), stored, stored.credential, settings=settings)


def embedded(texts: Sequence[str]) -> bytes:
    """The provider's response: each text's embedding is its length, and each character is a token."""
    rows = [{"index": index, "embedding": [float(len(text))]} for index, text in enumerate(texts)]
    return orjson.dumps({"data": rows, "usage": {"total_tokens": sum(map(len, texts))}})


@dataclass
class Call:
    """A call of the provider; `response` ends it."""

    texts: list[str]
    response: asyncio.Future[bytes] = field(default_factory=asyncio.Future)


class EmbeddingCalls:
    """Keeps the calls; each is answered at once, or by the test if it `waits`. `cancelled` ones were broken off."""

    def __init__(self, *, waits: bool = False) -> None:
        self.waits = waits
        self.calls: list[Call] = []
        self._coming: asyncio.Queue[Call] = asyncio.Queue()
        self.error: BaseException | None = None  # of every call
        self.cancelled = 0

    async def fetch(self, model: CompiledModel, request: ProviderRequest) -> bytes:
        call = Call(orjson.loads(request.body)["input"])
        self.calls.append(call)
        self._coming.put_nowait(call)
        if self.error is not None:
            raise self.error
        if not self.waits:
            call.response.set_result(embedded(call.texts))
        try:
            return await call.response
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def next(self) -> Call:
        """Wait for a call that has not been waited for."""
        async with asyncio.timeout(5):
            return await self._coming.get()

    @property
    def texts(self) -> list[list[str]]:
        return [call.texts for call in self.calls]


@dataclass
class Callers:
    """Callers of one model over its batches."""

    calls: EmbeddingCalls
    model: CompiledModel

    def __post_init__(self) -> None:
        self.batches = EmbeddingBatches(self.calls.fetch)

    def start(
        self, *texts: str, model: CompiledModel | None = None, parameters: Mapping[str, str] | None = None
    ) -> asyncio.Task[Any]:
        """A caller that sends these texts."""
        return asyncio.create_task(self._embed(model or self.model, TextDocsInput(texts, parameters or {})))

    async def _embed(self, model: CompiledModel, given: TextDocsInput) -> Any:
        action = model.action()
        texts = orjson.dumps(list(given.text_docs)).decode()
        request = action.render({"input": texts, **given.parameters})
        return orjson.loads(await self.batches.fetch(model, given, request))
