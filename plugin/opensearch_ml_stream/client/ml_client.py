"""Models made from blueprints, and their predictions, through a blocking opensearch-py client."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from opensearchpy import OpenSearch

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
from opensearch_ml_stream.client.sync_stream import open_response, stream_chunks


class StreamingMLClient:
    """Client of the sidecar over a blocking opensearch-py client: makes connectors and models, and asks them.

    No request is ever sent twice. What fails raises a SidecarError, which holds the server's reason and status.

    Example:
        ml = StreamingMLClient(OpenSearch("http://127.0.0.1:9510"))
        model_id = ml.create_model("openai-chat", credential={"openAI_key": "sk-..."})
        print("".join(chunk.text for chunk in ml.predict_stream(model_id, {"inputs": "Why is the sky blue?"})))

    Args:
        client: An opensearch-py client over Urllib3HttpConnection or RequestsHttpConnection.
        url: The sidecar's, if the client does not point at it: `http(s)://[user:password@]host[:port][/prefix]`.
        api_key: A key of the sidecar, which is sent in place of the client's login.
        idle_timeout: Seconds without any byte, heartbeats included, after which a response is given up.
    """

    def __init__(
        self,
        client: OpenSearch,
        *,
        url: str | None = None,
        api_key: str | None = None,
        idle_timeout: float = IDLE_SECONDS,
    ) -> None:
        self._client = client
        self._access = Access(url, api_key, idle_timeout)

    def create_connector(
        self,
        blueprint_file: str | Path,
        *,
        parameters: Mapping[str, Any] | None = None,
        credential: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> str:
        """Create a connector from a blueprint.

        Args:
            blueprint_file: The path of a blueprint file (with a `/` or `.json`), or the name of a shipped blueprint.
            parameters: Values for the connector's parameters, beside or instead of the blueprint's own.
            credential: Values for the credential, by the blueprint's keys.
            name: The connector's name, if not the blueprint's.

        Returns:
            The connector's id.

        Raises:
            RequestRefused: If there is no such blueprint, a value that it needs is missing, or the sidecar refuses it.
            SidecarError: If the request fails otherwise.
        """
        operation = connector_creation(str(blueprint_file), parameters or {}, credential or {}, name)
        return str(self._send(operation)["connector_id"])

    def create_model(
        self,
        blueprint_file: str | Path,
        *,
        parameters: Mapping[str, Any] | None = None,
        credential: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> str:
        """Create a model with a connector of its own, which is deleted again if the model cannot be registered.

        Args and errors are those of `create_connector`; `name` is also the model's.

        Returns:
            The model's id.
        """
        connector_id = self.create_connector(blueprint_file, parameters=parameters, credential=credential, name=name)
        try:
            return str(self._send(model_registration(str(blueprint_file), connector_id, name))["model_id"])
        except SidecarError:
            with suppress(SidecarError):  # the reason why there is no model counts
                self._send(connector_deletion(connector_id))
            raise

    def predict(self, model_id: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the whole response at once: `{"inference_results": [...]}`."""
        return self._send(prediction(model_id, parameters))

    def predict_stream(self, model_id: str, parameters: Mapping[str, Any]) -> Generator[Chunk]:
        """Stream a model's response; as `opensearch_ml_stream.client.predict_stream`, with this client's options."""
        return stream_chunks(self._client, streamed_prediction(model_id, parameters), self._access)

    def embed(
        self, model_id: str, texts: Sequence[str], parameters: Mapping[str, Any] | None = None
    ) -> list[list[float]]:
        """Return an embedding for each text, in the order of the texts; all are sent in one request."""
        return embeddings_in(self._send(embedding(model_id, texts, parameters or {})), len(texts))

    def _send(self, operation: Operation) -> dict[str, Any]:
        with open_response(self._client, operation, self._access) as pieces:
            return json_object(b"".join(pieces))
