"""Which HTTP proxy a URL goes through, by the environment: HTTP_PROXY, HTTPS_PROXY, NO_PROXY."""

from collections.abc import Mapping
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # documented, not in typeshed

from opensearch_ml_stream.plugin.upstream.target import parse_target


def proxy_for(url: str, proxies: Mapping[str, str]) -> str | None:
    """The proxy's URL, None for the direct way. `proxies` is what `urllib.request.getproxies_environment` gives."""
    target = parse_target(url)
    proxy = proxies.get(target.scheme)
    if proxy is None or proxy_bypass_environment(f"{target.host}:{target.port}", dict(proxies)):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"
