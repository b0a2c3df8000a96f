"""Models made from blueprints, and their predictions, through a blocking opensearch-py client."""

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from opensearch_ml_stream.client.blueprints import connector_body, find_blueprint, model_body
from opensearch_ml_stream.client.prediction_request import (
    HEADERS,
    IDLE_SECONDS,
    login_headers,
    predict_body,
    predict_path,
)
from opensearch_ml_stream.client.response_chunks import Chunk
from opensearch_ml_stream.client.sync_stream import Call, connection_to, open_response, predict_stream
from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH


class StreamingMLClient:
    """Client of the sidecar over a blocking opensearch-py client: makes connectors and models, and asks them.

    No request is ever sent twice. Errors of the server are opensearch-py's exceptions (AuthenticationException for
    401, AuthorizationException for 403, NotFoundError, RequestError, ConnectionError, ...).

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
        self._url = url
        self._api_key = api_key
        self._headers = {**HEADERS, **login_headers(api_key)}
        self._idle_timeout = idle_timeout

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
            NotFound: If no shipped blueprint has that name.
            InvalidRequest: If the file is not a blueprint, or a value that it needs is missing.
            OpenSearchException: opensearch-py's own, if the server refuses the connector or cannot be reached.
        """
        blueprint = find_blueprint(str(blueprint_file))
        body = connector_body(blueprint, parameters or {}, credential or {}, name)
        return str(self._send("POST", "/connectors/_create", body)["connector_id"])

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
        body = model_body(find_blueprint(str(blueprint_file)), connector_id, name)
        try:
            return str(self._send("POST", "/models/_register", body)["model_id"])
        except OpenSearchException:
            self._send("DELETE", f"/connectors/{quote(connector_id, safe='')}")
            raise

    def predict(self, model_id: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the whole response at once: `{"inference_results": [...]}`.

        Raises:
            OpenSearchException: opensearch-py's own, if the prediction fails.
            StreamError: If the response breaks off.
        """
        path = predict_path(model_id, stream=False)
        return self._call(Call(path, predict_body(parameters), self._headers, self._idle_timeout))

    def predict_stream(self, model_id: str, parameters: Mapping[str, Any]) -> Generator[Chunk]:
        """Stream a model's response; as `opensearch_ml_stream.client.predict_stream`, with this client's options."""
        options: dict[str, Any] = {"url": self._url, "api_key": self._api_key, "idle_timeout": self._idle_timeout}
        return predict_stream(self._client, model_id, parameters, **options)

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        data = b"" if body is None else orjson.dumps(body)
        return self._call(Call(BASE_PATH + path, data, self._headers, self._idle_timeout, method))

    def _call(self, call: Call) -> dict[str, Any]:
        with connection_to(self._client, self._url) as connection, open_response(connection, call) as pieces:
            response: dict[str, Any] = orjson.loads(b"".join(pieces))
        return response
