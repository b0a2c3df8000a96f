"""Chooses the HTTP proxy for a URL, as HTTP_PROXY, HTTPS_PROXY and NO_PROXY in the environment say."""

from collections.abc import Mapping
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # documented, not in typeshed

from opensearch_ml_stream.plugin.upstream.target import parse_target


def proxy_for(url: str, proxies: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy for a provider's URL, None for a direct connection.

    `proxies` is what `urllib.request.getproxies_environment` returns.
    """
    target = parse_target(url)
    proxy = proxies.get(target.scheme)
    if proxy is None or proxy_bypass_environment(f"{target.host}:{target.port}", dict(proxies)):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"
