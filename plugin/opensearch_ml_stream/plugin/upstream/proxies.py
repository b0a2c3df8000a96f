"""HTTP proxies before providers, as HTTP_PROXY, HTTPS_PROXY and NO_PROXY in the environment name them.

A request of an `http` URL is sent to its proxy, with the whole URL in its first line. For an `https` URL the proxy is
asked for a tunnel (CONNECT), in which TLS is spoken with the provider.
"""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import unquote, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # documented, not in typeshed

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.plugin.upstream.target import Target


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy. `authority` is host:port for messages, `authorization` the login that its URL has, or empty."""

    host: str
    port: int
    authority: str
    authorization: str = field(default="", repr=False)


def proxy_for(target: Target, proxies: Mapping[str, str]) -> Proxy | None:
    """Return the proxy for a provider, None for a direct connection. Unavailable if the environment's cannot be used.

    `proxies` is what `urllib.request.getproxies_environment` returns.
    """
    url = proxies.get(target.scheme)
    if url is None or proxy_bypass_environment(f"{target.host}:{target.port}", dict(proxies)):
        return None
    return parse_proxy(url, f"{target.scheme}_proxy".upper())


@lru_cache(maxsize=16)
def parse_proxy(url: str, variable: str) -> Proxy:
    """Parse the URL of a proxy. Unavailable, which does not repeat the URL, if there can be no such proxy."""
    not_a_url = f"The environment variable {variable} is not the URL of a proxy, as http://host:port is"
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        raise Unavailable(not_a_url) from None
    if not host:
        raise Unavailable(not_a_url)
    if parts.scheme != "http":
        raise Unavailable(
            f"The environment variable {variable} names a proxy by {parts.scheme}://. Only proxies by http:// can be "
            "used, in which calls of https URLs stay encrypted: give the proxy's http:// address, or list the "
            "provider's host in NO_PROXY"
        )
    login = ""
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        login = f"Basic {b64encode(user.encode()).decode()}"
    return Proxy(host, port, f"[{host}]:{port}" if ":" in host else f"{host}:{port}", login)
