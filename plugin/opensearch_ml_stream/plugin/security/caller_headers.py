"""The headers that authenticate a caller to OpenSearch. No other headers of a request are sent there."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from opensearch_ml_stream.connectors.errors import Unauthorized
from opensearch_ml_stream.plugin.security.presented_credentials import authorization_of, single_header
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store import IMPERSONATION

MAX_CHARACTERS = 16_100  # of `Authorization`: a token with many groups is long, and OpenSearch's head ends at 16,384

_OWN_SCHEME = "apikey"  # the sidecar's own keys; OpenSearch's tokens are `Bearer`

Scope = Mapping[str, Any]
Address = IPv4Address | IPv6Address

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TrustedProxy:
    """A proxy in front of the sidecar that names the user, and maybe the backend roles, in headers that it sets.

    Header names are in lower case. The proxy connects from one of the `networks`.
    """

    user_header: str
    roles_header: str
    networks: tuple[IPv4Network | IPv6Network, ...]

    def is_at(self, address: Address | None) -> bool:
        """Whether a connection from that address is the proxy's."""
        return address is not None and any(address in network for network in self.networks)


def trusted_proxy(settings: Settings) -> TrustedProxy | None:
    """Return the proxy that the settings trust, None if they name no address of one."""
    if not settings.proxy_auth_trusted_addresses:
        return None
    networks = tuple(ip_network(address) for address in settings.proxy_auth_trusted_addresses)
    return TrustedProxy(settings.proxy_auth_user_header, settings.proxy_auth_roles_header, networks)


def caller_headers(scope: Scope, proxy: TrustedProxy | None) -> dict[str, str] | None:
    """Return the headers to ask OpenSearch with, None if the request has no credentials.

    Unauthorized for what OpenSearch cannot know, and for a user who is named from an address that is not the proxy's:
    a request that claims to be two users is none of theirs. InvalidRequest for two logins.
    """
    headers = scope["headers"]
    if proxy is not None and (user := _value(proxy.user_header, headers)) is not None:
        caller = _headers_of_proxy(scope, proxy, user)
    else:
        authorization = _in_ascii(authorization_of(headers, MAX_CHARACTERS))
        if authorization is None or authorization.partition(" ")[0].lower() == _OWN_SCHEME:
            return None
        caller = {"authorization": authorization}
    if (other := _value(IMPERSONATION, headers)) is not None:
        caller[IMPERSONATION] = other
    return caller


def _headers_of_proxy(scope: Scope, proxy: TrustedProxy, user: str) -> dict[str, str]:
    """Return the proxy's headers as they came.

    `X-Forwarded-For` is the proxy's own address, whatever the request says: without it OpenSearch takes no user from
    a header, and the request's may be anyone's.
    """
    address = peer_address(scope)
    if not proxy.is_at(address):
        log.warning(
            "A request with the header %s came from %s, which is not in opensearch_ml_stream.proxy_auth."
            "trusted_addresses: it is refused",
            proxy.user_header,
            address,
        )
        raise Unauthorized
    forwarded = {proxy.user_header: user, "x-forwarded-for": str(address)}
    if proxy.roles_header and (roles := _value(proxy.roles_header, scope["headers"])) is not None:
        forwarded[proxy.roles_header] = roles
    return forwarded


def peer_address(scope: Scope) -> Address | None:
    """Return the address that a request's connection comes from, None if it has none."""
    peer = scope.get("client")
    try:
        address = ip_address(peer[0].partition("%")[0]) if peer else None
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _value(name: str, headers: Any) -> str | None:
    """Return a header's value, None if it is absent or empty. Unauthorized for two, or one that is no plain ASCII."""
    return _in_ascii(single_header(name.encode(), headers, MAX_CHARACTERS))


def _in_ascii(value: str | None) -> str | None:
    """Return a value, None for an empty one. Unauthorized if it is not plain ASCII.

    Other bytes are ambiguous: OpenSearch might get others than those that came.
    """
    if value is not None and not (value.isascii() and value.isprintable()):
        raise Unauthorized
    return value or None
