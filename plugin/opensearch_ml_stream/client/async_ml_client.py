"""Models made from blueprints, and their predictions, through an async opensearch-py client."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from opensearchpy import AsyncOpenSearch

from opensearch_ml_stream.client.async_stream import async_open_response, async_stream_chunks
from opensearch_ml_stream.client.errors import SidecarError
from opensearch_ml_stream.client.operations import (
    IDLE_SECONDS,
    Access,
    Operation,
    connector_creation,
    connector_deletion,
    embedding,
    embeddings_in,
    json_object,
    model_registration,
    prediction,
    streamed_prediction,
)
from opensearch_ml_stream.client.response_chunks import Chunk


class AsyncStreamingMLClient:
    """`StreamingMLClient` for programs with an async opensearch-py client: the same methods, to be awaited.

    Example:
        async with AsyncOpenSearch("http://127.0.0.1:9510") as client:
            ml = AsyncStreamingMLClient(client)
            model_id = await ml.create_model("openai-chat", credential={"openAI_key": "sk-..."})
            async for chunk in ml.predict_stream(model_id, {"inputs": "Why is the sky blue?"}):
                print(chunk.text, end="", flush=True)

    Args:
        client: An opensearch-py client over AsyncHttpConnection or AIOHttpConnection.
        url: The sidecar's, if the client does not point at it: `http(s)://[user:password@]host[:port][/prefix]`.
        api_key: A key of the sidecar, which is sent in place of the client's login.
        idle_timeout: Seconds without any byte, heartbeats included, after which a response is given up.
    """

    def __init__(
        self,
        client: AsyncOpenSearch,
        *,
        url: str | None = None,
        api_key: str | None = None,
        idle_timeout: float = IDLE_SECONDS,
    ) -> None:
        self._client = client
        self._access = Access(url, api_key, idle_timeout)

    async def create_connector(
        self,
        blueprint_file: str | Path,
        *,
        parameters: Mapping[str, Any] | None = None,
        credential: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> str:
        """Create a connector from a blueprint; as `StreamingMLClient.create_connector`."""
        operation = connector_creation(str(blueprint_file), parameters or {}, credential or {}, name)
        return str((await self._send(operation))["connector_id"])

    async def create_model(
        self,
        blueprint_file: str | Path,
        *,
        parameters: Mapping[str, Any] | None = None,
        credential: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> str:
        """Create a model with a connector of its own; as `StreamingMLClient.create_model`."""
        connector_id = await self.create_connector(
            blueprint_file, parameters=parameters, credential=credential, name=name
        )
        try:
            return str((await self._send(model_registration(str(blueprint_file), connector_id, name)))["model_id"])
        except SidecarError:
            with suppress(SidecarError):  # the reason why there is no model counts
                await self._send(connector_deletion(connector_id))
            raise

    async def predict(self, model_id: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the whole response at once: `{"inference_results": [...]}`."""
        return await self._send(prediction(model_id, parameters))

    def predict_stream(self, model_id: str, parameters: Mapping[str, Any]) -> AsyncGenerator[Chunk]:
        """Stream a model's response; as `async_predict_stream`, with this client's options."""
        return async_stream_chunks(self._client, streamed_prediction(model_id, parameters), self._access)

    async def embed(
        self, model_id: str, texts: Sequence[str], parameters: Mapping[str, Any] | None = None
    ) -> list[list[float]]:
        """Return an embedding for each text, in the order of the texts; all are sent in one request."""
        return embeddings_in(await self._send(embedding(model_id, texts, parameters or {})), len(texts))

    async def _send(self, operation: Operation) -> dict[str, Any]:
        async with async_open_response(self._client, operation, self._access) as pieces:
            return json_object(b"".join([data async for data in pieces]))
