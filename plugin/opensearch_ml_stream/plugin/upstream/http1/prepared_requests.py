"""The heads of requests to providers (RFC 9112, section 3), made once for calls that differ in their body only."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream.addresses import AddressPolicy
from opensearch_ml_stream.plugin.upstream.http1.pool import Route
from opensearch_ml_stream.plugin.upstream.proxies import Proxy, proxy_for
from opensearch_ml_stream.plugin.upstream.target import Target, parse_target
from opensearch_ml_stream.plugin.upstream.tls_contexts import PLAIN, UNVERIFIED, tls_key

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


MAX_PREPARED = 256  # most calls have the same few URLs and headers; those that are signed are all different
MAX_KEPT_HEAD_BYTES = 8 * 1024  # a larger head is made for each call

_Key = tuple[str, str, str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A call without its body. It holds for one config and one state of the settings.

    `head` is without the length and the last line's end; `always_has_length` says whether an empty body has one too.
    """

    target: Target
    route: Route
    head: bytes = field(repr=False)  # it holds the credential
    always_has_length: bool
    config: ClientConfig
    settings: Settings

    def request_bytes(self, body: bytes) -> bytes:
        """Return head and body in one piece, so that a small request is one packet."""
        if body or self.always_has_length:
            return b"%b\r\nContent-Length: %d\r\n\r\n%b" % (self.head, len(body), body)
        return self.head + b"\r\n\r\n"


class PreparedRequests:
    """The last calls that were prepared, MAX_PREPARED at most."""

    def __init__(self, live: LiveSettings, proxies: Mapping[str, str]) -> None:
        self._live = live
        self._proxies = proxies
        self._calls: dict[_Key, PreparedRequest] = {}
        self._policy: tuple[Settings, AddressPolicy] = (live.current, AddressPolicy.of(live.current))

    def get(
        self, request: ProviderRequest, config: ClientConfig, tls: Mapping[str, str], pool_key: str
    ) -> PreparedRequest:
        """Return the call of a request; `tls` and `pool_key` as `Upstream.open` has them.

        InvalidRequest if the URL cannot be called, or if HTTP does not allow the method or a header; Unavailable if
        the environment names a proxy that cannot be used.
        """
        key = (pool_key, request.method, request.url, tuple(request.headers.items()))
        call = self._calls.get(key)
        if call is None or call.config is not config or call.settings is not self._live.current:
            call = self._prepare(request, config, tls, pool_key)
            self._keep(key, call)
        return call

    def policy(self) -> AddressPolicy:
        """Return the address policy of the current settings."""
        settings, policy = self._policy
        if settings is not self._live.current:
            policy = AddressPolicy.of(self._live.current)
            self._policy = (self._live.current, policy)
        return policy

    def _prepare(
        self, request: ProviderRequest, config: ClientConfig, tls: Mapping[str, str], pool_key: str
    ) -> PreparedRequest:
        target = parse_target(request.url)
        key = tls_key(request.url, config, tls)
        policy = self.policy()
        if policy.trusted_private:
            policy = policy.for_url(request.url)
        proxy = proxy_for(target, self._proxies)
        route = Route(pool_key, target.scheme, target.host, target.port, key, policy, proxy)
        return PreparedRequest(
            target,
            route,
            request_head(request, target, proxy if target.scheme == "http" else None),
            request.method in METHODS_WITH_BODY,
            config,
            self._live.current,
        )

    def _keep(self, key: _Key, call: PreparedRequest) -> None:
        if len(call.head) > MAX_KEPT_HEAD_BYTES or call.route.tls not in (PLAIN, UNVERIFIED):  # certificates may change
            return
        if len(self._calls) >= MAX_PREPARED:
            self._calls.clear()
        self._calls[key] = call
