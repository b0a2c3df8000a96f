"""What the blocking and the async client share: the request that is sent, and what an answer's status means."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import orjson
from opensearchpy.exceptions import HTTP_EXCEPTIONS, ImproperlyConfigured, OpenSearchException, TransportError

from opensearch_ml_stream.rest_handlers.paths import BASE_PATH

IDLE_SECONDS = 60.0
"""How long nothing at all may come, heartbeats included (the sidecar sends one each 15 s)."""

STREAM_HEADERS = {
    "accept": "application/x-ndjson, application/json;q=0.5",
    "accept-encoding": "identity",
    "content-type": "application/json",
}
HEADERS = {"accept": "application/json", "accept-encoding": "identity", "content-type": "application/json"}


def predict_path(model_id: str, *, stream: bool) -> str:
    return f"{BASE_PATH}/models/{quote(model_id, safe='')}/_predict{'/stream' if stream else ''}"


def predict_body(parameters: Mapping[str, Any]) -> bytes:
    return orjson.dumps({"parameters": dict(parameters)})


def http_error(status: int, body: bytes, content_type: str) -> OpenSearchException:
    """The exception that opensearch-py has for that status, with `status_code`, `error` and `info`."""
    text = body.decode("utf-8", "replace")
    error: object = text
    info: Any = None
    if content_type.partition(";")[0].strip() == "application/json":
        try:
            info = orjson.loads(body)
        except orjson.JSONDecodeError:
            info = None
        found = info.get("error", text) if isinstance(info, dict) else text
        error = found.get("type", found) if isinstance(found, dict) else found
    return HTTP_EXCEPTIONS.get(status, TransportError)(status, error, info)


def connection_options(transport: Any, url: str) -> dict[str, Any]:
    """How to build a connection to `url` as the client built its own: same auth, TLS and headers.

    The user and password of `url`, if it has any, take the place of the client's.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ImproperlyConfigured(f"The sidecar's url must be http(s)://host[:port], not {parts.scheme or 'empty'}")
    first = dict(transport.hosts[0]) if transport.hosts else {}
    options = {**transport.kwargs, **first}
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
