"""Models made from blueprints, and their predictions, through a blocking opensearch-py client."""

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from opensearch_ml_stream.client.blueprints import connector_body, find_blueprint, model_body
from opensearch_ml_stream.client.response_chunks import Chunk
from opensearch_ml_stream.client.stream_request import HEADERS, IDLE_SECONDS, predict_body, predict_path
from opensearch_ml_stream.client.sync_stream import Call, answer, connection_to, predict_stream
from opensearch_ml_stream.rest_handlers.paths import BASE_PATH


class StreamingMLClient:
    """`url` is the sidecar's, if the client does not point at it. No request is ever sent twice.

    Errors of the server are opensearch-py's exceptions (NotFoundError, RequestError, ...).
    """

    def __init__(self, client: OpenSearch, *, url: str | None = None, idle_timeout: float = IDLE_SECONDS) -> None:
        self._client = client
        self._url = url
        self._idle_timeout = idle_timeout

    def create_connector(
        self,
        blueprint_file: str | Path,
        *,
        parameters: Mapping[str, Any] | None = None,
        credential: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> str:
        """The id of a connector made from a blueprint: a file, or the name of a shipped one."""
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
        """The id of a model with a connector of its own, which is taken back if the model cannot be made."""
        connector_id = self.create_connector(blueprint_file, parameters=parameters, credential=credential, name=name)
        body = model_body(find_blueprint(str(blueprint_file)), connector_id, name)
        try:
            return str(self._send("POST", "/models/_register", body)["model_id"])
        except OpenSearchException:
            self._send("DELETE", f"/connectors/{quote(connector_id, safe='')}")
            raise

    def predict(self, model_id: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The whole answer at once: `{"inference_results": [...]}`."""
        path = predict_path(model_id, stream=False)
        return self._call(Call(path, predict_body(parameters), HEADERS, self._idle_timeout))

    def predict_stream(self, model_id: str, parameters: Mapping[str, Any]) -> Generator[Chunk]:
        """The answer's chunks as they arrive; see opensearch_ml_stream.predict_stream."""
        return predict_stream(self._client, model_id, parameters, url=self._url, idle_timeout=self._idle_timeout)

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        data = b"" if body is None else orjson.dumps(body)
        return self._call(Call(BASE_PATH + path, data, HEADERS, self._idle_timeout, method))

    def _call(self, call: Call) -> dict[str, Any]:
        with connection_to(self._client, self._url) as connection, answer(connection, call) as pieces:
            found: dict[str, Any] = orjson.loads(b"".join(pieces))
        return found
