"""URLs and ids of runtimes: `runtime://<percent-encoded name>`, which only the sidecar itself writes into a connector.

A request for such a URL goes to a process of the model of that name, never to the network.
"""

from urllib.parse import quote, unquote

from opensearch_ml_stream.connectors.documents import PREDICT, Connector

RUNTIME_SCHEME = "runtime://"
_ID_PREFIX = "runtime-"


def is_runtime_url(url: str) -> bool:
    """Return whether a connector's or request's URL is that of a runtime."""
    return url.startswith(RUNTIME_SCHEME)


def runtime_name(url: str) -> str:
    """Return the name of the model that a runtime's URL means; what stands behind the name is not part of it."""
    return unquote(url.removeprefix(RUNTIME_SCHEME).partition("/")[0])


def runtime_url(name: str) -> str:
    """Return the URL of the runtime of this name."""
    return RUNTIME_SCHEME + quote(name, safe="")


def is_runtime_id(model_id: str) -> bool:
    """Return whether the id of a model is one that only the sidecar gives."""
    return model_id.startswith(_ID_PREFIX)


def runtime_model_id(name: str, version: str | None) -> str:
    """Return the id of a runtime's model."""
    return f"{_ID_PREFIX}{quote(name, safe='')}" + ("" if version is None else f"-{quote(version, safe='')}")


def find_runtime(model_id: str, connector: Connector) -> str | None:
    """Return the name of the runtime that a model is, None for any other model.

    Only the sidecar gives a model such an id: who gets a runtime's URL into a connector of his own gets past no right
    or limit of the runtime's model.
    """
    url = next((action.url for action in connector.actions if action.action_type == PREDICT), "")
    return runtime_name(url) if is_runtime_id(model_id) and is_runtime_url(url) else None
