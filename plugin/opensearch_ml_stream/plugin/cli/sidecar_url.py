"""The URL of a sidecar in one form, in which logins are remembered and requests are sent."""

from ipaddress import ip_address

import httpx

from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage

_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_PORT = 65535


def sidecar_url(text: str) -> str:
    """Return `scheme://host[:port][/prefix]`: in lower case, without a default port, without a slash at its end.

    Two URLs mean the same sidecar if these are equal. httpx parses the text here as it does when it sends a request, so
    the host that is compared is the host that is called.

    Raises:
        WrongUsage: If it is not an http(s) URL with a host, or holds a login, a query or a fragment.
    """
    try:
        url = httpx.URL(text)
        scheme, host, port = url.scheme.lower(), url.raw_host.decode("ascii").lower(), url.port
    except (httpx.InvalidURL, ValueError):
        raise WrongUsage("--url must be of the form http://host:port") from None
    if url.userinfo:
        raise WrongUsage(
            "--url cannot hold a login; use `opensearch-ml-stream login`, MLSTREAM_API_KEY, or MLSTREAM_USER and "
            "MLSTREAM_PASSWORD"
        )
    if scheme not in _DEFAULT_PORTS or not host or (port or 0) > _MAX_PORT or url.query or url.fragment:
        raise WrongUsage("--url must be of the form http://host:port")
    shown_host = f"[{host}]" if ":" in host else host
    shown_port = "" if port in (None, _DEFAULT_PORTS[scheme]) else f":{port}"
    prefix = url.raw_path.partition(b"?")[0].decode("ascii").rstrip("/")
    return f"{scheme}://{shown_host}{shown_port}{prefix}"


def is_in_clear(url: str) -> bool:
    """Whether requests to the URL can be read on their way: they go to another machine without TLS."""
    parsed = httpx.URL(url)
    if parsed.scheme == "https" or parsed.host == "localhost":
        return False
    try:
        return not ip_address(parsed.host).is_loopback
    except ValueError:  # a name
        return True
