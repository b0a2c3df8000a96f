"""URLs of runtimes: `runtime://<percent-encoded name>`, which only the sidecar itself writes into a connector.

A request for such a URL goes to a process of the model of that name, never to the network.
"""

from urllib.parse import quote, unquote

RUNTIME_SCHEME = "runtime://"


def is_runtime_url(url: str) -> bool:
    """Return whether a connector's or request's URL is that of a runtime."""
    return url.startswith(RUNTIME_SCHEME)


def runtime_name(url: str) -> str:
    """Return the name of the model that a runtime's URL means; what stands behind the name is not part of it."""
    return unquote(url.removeprefix(RUNTIME_SCHEME).partition("/")[0])


def runtime_url(name: str) -> str:
    """Return the URL of the runtime of this name."""
    return RUNTIME_SCHEME + quote(name, safe="")
