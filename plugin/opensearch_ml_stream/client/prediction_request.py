"""Prediction request: path, body, headers, connection, and the exception for an error status; shared by all clients."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import orjson
from opensearchpy.exceptions import HTTP_EXCEPTIONS, ImproperlyConfigured, OpenSearchException, TransportError

from opensearch_ml_stream.client.authorization import bearer
from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH

IDLE_SECONDS = 60.0
"""The longest silence of the server by default. The sidecar sends a heartbeat each 15 s."""

STREAM_HEADERS = {
    "accept": "application/x-ndjson, application/json;q=0.5",
    "accept-encoding": "identity",
    "content-type": "application/json",
}
HEADERS = {"accept": "application/json", "accept-encoding": "identity", "content-type": "application/json"}
AUTHORIZATION = "authorization"
"""The name of the header; opensearch-py's connections have their own in lower case, too."""


def predict_path(model_id: str, *, stream: bool) -> str:
    """Return the path of `_predict` or `_predict/stream` for a model."""
    return f"{BASE_PATH}/models/{quote(model_id, safe='')}/_predict{'/stream' if stream else ''}"


def login_headers(api_key: str | None) -> dict[str, str]:
    """Return the header for a key of the sidecar, which replaces the client's own login; none without a key.

    Raises:
        ImproperlyConfigured: If the key cannot be one; does not show it.
    """
    if api_key is None:
        return {}
    try:
        return {AUTHORIZATION: bearer(api_key)}
    except ValueError as error:
        raise ImproperlyConfigured(f"api_key cannot be used: {error}") from None


def predict_body(parameters: Mapping[str, Any]) -> bytes:
    """Return the JSON body of a prediction with these parameters."""
    return orjson.dumps({"parameters": dict(parameters)})


def http_error(status: int, body: bytes, content_type: str) -> OpenSearchException:
    """Return opensearch-py's exception for an error response, with its `status_code`, `error` and `info`.

    `error` is the error's type, or the whole body where it is not an OpenSearch error; `info` is the parsed body.
    """
    text = body.decode("utf-8", "replace")
    error: object = text
    info: Any = None
    if content_type.partition(";")[0].strip() == "application/json":
        try:
            info = orjson.loads(body)
        except orjson.JSONDecodeError:
            info = None
        member = info.get("error", text) if isinstance(info, dict) else text
        error = member.get("type", member) if isinstance(member, dict) else member
    return HTTP_EXCEPTIONS.get(status, TransportError)(status, error, info)


def connection_options(transport: Any, url: str) -> dict[str, Any]:
    """Return the arguments for a connection to `url` with the login, TLS and headers of the client's own.

    The user and password of `url`, if it has any, take precedence over the client's.

    Raises:
        ImproperlyConfigured: If `url` is not an http(s) URL with a host.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ImproperlyConfigured(f"The sidecar's url must be http(s)://host[:port], not {parts.scheme or 'empty'}")
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
