"""URLs and ids of runtimes: `runtime://<percent-encoded name>`, which only the sidecar itself writes into a connector.

A request for such a URL goes to a process of the model of that name, never to the network. A model that an engine's
server runs has `http://engine.invalid/<name>/<path>`, so that templates render its requests like any provider's. No
host name ends in `.invalid` (RFC 6761); the server's address replaces it when the model is called.
"""

from urllib.parse import quote, unquote

from opensearch_ml_stream.connectors.documents import PREDICT, Connector

RUNTIME_SCHEME = "runtime://"
ENGINE_ORIGIN = "http://engine.invalid/"
_ID_PREFIX = "runtime-"


def is_runtime_url(url: str) -> bool:
    """Return whether a connector's or request's URL is that of a runtime."""
    return url.startswith(RUNTIME_SCHEME)


def runtime_name(url: str) -> str:
    """Return the name of the model in a runtime's URL, without what follows it."""
    return unquote(url.removeprefix(RUNTIME_SCHEME).partition("/")[0])


def runtime_url(name: str) -> str:
    """Return the URL of the runtime of this name."""
    return RUNTIME_SCHEME + quote(name, safe="")


def is_runtime_id(model_id: str) -> bool:
    """Return whether a model's id is one that only the sidecar gives."""
    return model_id.startswith(_ID_PREFIX)


def runtime_model_id(name: str, version: str | None) -> str:
    """Return the id of a runtime's model."""
    return f"{_ID_PREFIX}{quote(name, safe='')}" + ("" if version is None else f"-{quote(version, safe='')}")


def engine_url(name: str) -> str:
    """Return the URL of the server that runs the model of this name, without a path."""
    return ENGINE_ORIGIN + quote(name, safe="")


def engine_target(url: str) -> tuple[str, str]:
    """Return the name of the model in an engine's URL, and the path at its server."""
    name, slash, path = url.removeprefix(ENGINE_ORIGIN).partition("/")
    return unquote(name), slash + path


def find_runtime(model_id: str, connector: Connector) -> str | None:
    """Return the name of a model's runtime, None for any other model.

    Only the sidecar gives models such ids, so a runtime's URL in a user's own connector does not bypass the permissions
    and limits of the runtime's model.
    """
    url = _predict_url(connector)
    return runtime_name(url) if is_runtime_id(model_id) and is_runtime_url(url) else None


def find_engine_model(model_id: str, connector: Connector) -> str | None:
    """Return the name of the model if an engine's server runs it; its id is checked as a runtime's is."""
    url = _predict_url(connector)
    return engine_target(url)[0] if is_runtime_id(model_id) and url.startswith(ENGINE_ORIGIN) else None


def _predict_url(connector: Connector) -> str:
    return next((action.url for action in connector.actions if action.action_type == PREDICT), "")
