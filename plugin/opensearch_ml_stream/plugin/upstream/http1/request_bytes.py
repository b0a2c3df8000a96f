"""Serializes the head of a provider request to HTTP/1.1 bytes (RFC 9112, section 3)."""

import re

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.upstream.proxies import Proxy
from opensearch_ml_stream.plugin.upstream.target import Target

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110, 5.6.2
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# These frame the message or belong to the connection: the connector cannot set them.
_RESERVED = frozenset({
    "accept-encoding", "connection", "content-length", "expect", "keep-alive", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
METHODS_WITH_BODY = ("POST", "PUT", "PATCH")


def request_head(request: ProviderRequest, target: Target, proxy: Proxy | None = None) -> bytes:
    """Return the request line and the headers that requests share whatever their body, without the last line's end.

    With `proxy` it is for that proxy. InvalidRequest for a method or header that HTTP does not allow.
    """
    if not _TOKEN.fullmatch(request.method):
        raise InvalidRequest("The connector's method is not an HTTP method")
    origin = "" if proxy is None else f"{target.scheme}://{target.host_header}"
    lines = [f"{request.method} {origin}{target.path} HTTP/1.1"]
    lines += [f"{name}: {value.strip()}" for name, value in _headers_without_length(request, target)]
    if proxy is not None and proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    return "\r\n".join(lines).encode("utf-8", "surrogatepass")


def _headers_without_length(request: ProviderRequest, target: Target) -> list[tuple[str, str]]:
    """Return the connector's headers and those that every request has.

    `Accept-Encoding: identity`, since a compressed stream would arrive in blocks, not as it is written.
    """
    headers = [("Host", target.host_header)]
    for name, value in request.headers.items():
        if not _TOKEN.fullmatch(name) or _CONTROL.search(value):
            raise InvalidRequest("The connector's headers hold a name or value that HTTP does not allow")
        lower = name.lower()
        if lower == "host":
            headers[0] = (name, value)
        elif lower not in _RESERVED:
            headers.append((name, value))
    headers.append(("Accept-Encoding", "identity"))
    return headers
