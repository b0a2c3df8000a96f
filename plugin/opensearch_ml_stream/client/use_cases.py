"""The core of both clients, without I/O: the requests that each use case makes, and what their responses hold.

A use case is a generator of requests. The client sends each, and sends the JSON object of its response into the
generator, or throws the error into it; what the generator returns is the result.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

import orjson
from opensearchpy.exceptions import ImproperlyConfigured

from opensearch_ml_stream.client.authorization import bearer
from opensearch_ml_stream.client.blueprints import connector_body, find_blueprint, model_body
from opensearch_ml_stream.client.errors import SidecarError, not_the_sidecar

BASE_PATH = "/_plugins/_ml"

IDLE_SECONDS = 60.0
"""The longest silence of the server by default. The sidecar sends a heartbeat each 15 s."""

AUTHORIZATION = "authorization"
"""The name of the header; opensearch-py's connections have their own in lower case, too."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Operation:
    """One request, below the base path."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    accept: str = "application/json"

    @property
    def full_path(self) -> str:
        """The path with the base path."""
        return BASE_PATH + self.path

    def content(self) -> bytes:
        """Return the body in JSON, which is empty if there is none."""
        return b"" if self.body is None else orjson.dumps(self.body)


UseCase = Generator[Operation, dict[str, Any], T]


@dataclass(frozen=True, slots=True)
class Access:
    """How the sidecar is called.

    Attributes:
        url: Where it is, if the client does not point at it.
        api_key: A key of the sidecar, which is sent in place of the client's login.
        idle_seconds: The longest silence that is tolerated.

    Raises:
        ImproperlyConfigured: If the key cannot be one; does not show it.
    """

    url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    idle_seconds: float = IDLE_SECONDS

    def __post_init__(self) -> None:
        if self.api_key is not None:
            try:
                bearer(self.api_key)
            except ValueError as error:
                raise ImproperlyConfigured(f"api_key cannot be used: {error}") from None

    def headers(self, operation: Operation) -> dict[str, str]:
        """Return a request's own headers; a login among them replaces that of the connection."""
        login = {} if self.api_key is None else {AUTHORIZATION: bearer(self.api_key)}
        return {
            "accept": operation.accept,
            "accept-encoding": "identity",
            "content-type": "application/json",
            **login,
        }

    def connection_options(self, transport: Any) -> dict[str, Any]:
        """Return the arguments for a connection to `url` with the login, TLS and headers of the client's own.

        The user and password of `url`, if it has any, take precedence over the client's.

        Raises:
            ImproperlyConfigured: If `url` is not an http(s) URL with a host.
        """
        parts = urlsplit(self.url or "")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ImproperlyConfigured(
                f"The sidecar's url must be http(s)://host[:port], not {parts.scheme or 'empty'}"
            )
        first_host = dict(transport.hosts[0]) if transport.hosts else {}
        options = {**transport.kwargs, **first_host}
        for name in ("scheme", "use_ssl", "url_prefix"):
            options.pop(name, None)
        options |= {"host": parts.hostname, "port": parts.port or (443 if parts.scheme == "https" else 80)}
        if parts.scheme == "https":
            options["use_ssl"] = True
        if parts.path.strip("/"):
            options["url_prefix"] = parts.path
        if parts.username is not None:
            options["http_auth"] = (unquote(parts.username), unquote(parts.password or ""))
        return options


def create_connector(
    blueprint_file: str | Path,
    parameters: Mapping[str, Any] | None,
    credential: Mapping[str, str] | None,
    name: str | None,
) -> UseCase[str]:
    """Create a connector from a blueprint and return its id; RequestRefused if the values do not fit the blueprint."""
    body = connector_body(find_blueprint(str(blueprint_file)), parameters or {}, credential or {}, name)
    response = yield Operation("POST", "/connectors/_create", body)
    return str(response["connector_id"])


def create_model(
    blueprint_file: str | Path,
    parameters: Mapping[str, Any] | None,
    credential: Mapping[str, str] | None,
    name: str | None,
) -> UseCase[str]:
    """Create a connector, then a model with it, and return the model's id; without a model no connector is left."""
    connector_id = yield from create_connector(blueprint_file, parameters, credential, name)
    try:
        body = model_body(find_blueprint(str(blueprint_file)), connector_id, name)
        response = yield Operation("POST", "/models/_register", body)
        return str(response["model_id"])
    except SidecarError:
        with suppress(SidecarError):  # the reason why there is no model counts
            yield Operation("DELETE", f"/connectors/{quote(connector_id, safe='')}")
        raise


def predict(model_id: str, parameters: Mapping[str, Any]) -> UseCase[dict[str, Any]]:
    """Return a whole response."""
    return (yield Operation("POST", f"/models/{quote(model_id, safe='')}/_predict", {"parameters": dict(parameters)}))


def embed(model_id: str, texts: Sequence[str], parameters: Mapping[str, Any] | None) -> UseCase[list[list[float]]]:
    """Return the embeddings of texts, in their order.

    Raises:
        TypeError: For one text in place of a list, whose letters would be embedded.
        SidecarError: If the response does not hold one embedding for each text: no text may get another's.
    """
    if isinstance(texts, str):
        raise TypeError("texts is a list of texts, not one text")
    body: dict[str, Any] = {"text_docs": list(texts)}
    if parameters:
        body["parameters"] = dict(parameters)
    response = yield Operation("POST", f"/_predict/text_embedding/{quote(model_id, safe='')}", body)
    try:
        vectors = [output["data"] for result in response["inference_results"] for output in result["output"]]
    except (LookupError, TypeError):
        raise SidecarError("The response holds no embeddings; is it a model for embeddings?") from None
    if len(vectors) != len(body["text_docs"]):
        raise SidecarError(f"The response holds {len(vectors)} embeddings, {len(body['text_docs'])} were requested")
    return vectors


def streamed_prediction(model_id: str, parameters: Mapping[str, Any]) -> Operation:
    """Return the request for a response chunk by chunk, whose body a ChunkReader reads."""
    path = f"/models/{quote(model_id, safe='')}/_predict/stream"
    return Operation("POST", path, {"parameters": dict(parameters)}, "application/x-ndjson, application/json;q=0.5")


def json_object(content: bytes) -> dict[str, Any]:
    """Return the JSON object of a response; SidecarError for anything else."""
    try:
        parsed = orjson.loads(content)
    except orjson.JSONDecodeError:
        parsed = None
    if not isinstance(parsed, dict):
        raise not_the_sidecar()
    return parsed
