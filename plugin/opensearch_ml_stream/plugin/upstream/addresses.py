"""The addresses of providers: look them up, and check each against the policy that the settings make.

The connection goes to the address that was checked, not to the name. So an attacker gains nothing from a DNS response
that changes between the check and the connection (rebinding).
"""

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.connectors.syntax.regex import compile_regex
from opensearch_ml_stream.plugin.refreshing_cache import RefreshingCache
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.upstream import network_errors
from opensearch_ml_stream.plugin.upstream import special_purpose_addresses as networks
from opensearch_ml_stream.plugin.upstream.trusted_endpoints import is_trusted

CACHE_SECONDS = 5.0  # long enough for a burst of requests, short enough for a provider that moves
MAX_CACHED_HOSTS = 1024

# IPv6 addresses whose last 32 bits are the IPv4 address they stand for: IPv4-compatible and IPv4-mapped (RFC 4291),
# SIIT (RFC 2765), NAT64 (RFC 6052, 8215).
_LAST_32_BITS = tuple(
    IPv6Network(block) for block in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
)
_NAT64_48 = IPv6Network("64:ff9b:1::/48")  # RFC 6052, section 2.2: the address around bits 64 to 71
_ISATAP = (0x00005EFE, 0x02005EFE)  # RFC 5214, section 6.1: the upper half of the interface identifier

_PRIVATE_SUFFIXES = (".local", ".localhost", ".internal", ".lan", ".home.arpa", ".svc", ".cluster.local")

Address = IPv4Address | IPv6Address


class PrivateAddress(InvalidRequest):
    """The host has a private address, which the settings do not allow for the URL."""


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """The addresses that calls may connect to. `restricted` are RE2 patterns, searched for in an address' text.

    `trusted_private` are the patterns of the URLs for which private addresses are allowed, empty for all URLs.
    """

    private_allowed: bool = False
    restricted: tuple[str, ...] = ()
    trusted_private: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> "AddressPolicy":
        """Return the policy of the settings."""
        trusted_private = settings.trusted_connector_private_endpoints_regex if settings.private_ip_enabled else ()
        return cls(settings.private_ip_enabled, settings.restricted_ip_patterns, trusted_private)

    def for_url(self, url: str) -> "AddressPolicy":
        """Return the policy for one URL: without private addresses if `trusted_private` does not allow it.

        A connection belongs to the policy under which it was opened, so none to a private address is used for a URL
        that may not reach one.
        """
        if not self.trusted_private or is_trusted(url, self.trusted_private):
            return self
        return replace(self, private_allowed=False)

    def check(self, host: str, addresses: tuple[str, ...]) -> None:
        """Raise InvalidRequest if any of the addresses is not allowed, UpstreamError if there are none.

        One forbidden address refuses the host, since a later attempt could connect to that address.
        """
        if not addresses:
            raise UpstreamError(f"Error communicating with remote model: no address found for host {host}")
        if any(self._restricts(ip_address(address)) for address in addresses):
            raise self._is_restricted(host)
        if not self.private_allowed and any(is_private(address) for address in addresses):
            raise self._is_private(host)

    def check_name(self, host: str) -> None:
        """Raise InvalidRequest for a name that is known to lead to an address that is not allowed.

        For a call through an HTTP proxy, which alone may know the address.
        """
        name = host.rstrip(".")
        if name in networks.PLATFORM_NAMES:
            raise self._is_restricted(host)
        if not self.private_allowed and (name in networks.SPECIAL_NAMES or name.endswith(".localhost")):
            raise self._is_private(host)

    def _restricts(self, address: Address) -> bool:
        forms = tuple(_with_embedded(address))
        texts = [str(form) for form in forms] if self.restricted else []
        return any(_is_platform(form) for form in forms) or any(
            compile_regex(pattern).search(text) for pattern in self.restricted for text in texts
        )

    def _is_restricted(self, host: str) -> InvalidRequest:
        return InvalidRequest(f"Remote inference host name has restricted ip address: {host}")

    def _is_private(self, host: str) -> PrivateAddress:
        if self.trusted_private:  # they are allowed, but not for this URL
            return PrivateAddress(
                "Connector URL is not matching the trusted connector private endpoint regex, "
                f"and its host has a private ip address: {host}"
            )
        return PrivateAddress(f"Remote inference host name has private ip address: {host}")


def is_private(address: str) -> bool:
    """Return whether an address is not one of the public internet: see `special_purpose_addresses`.

    An IPv6 address that stands for an IPv4 address (mapped, NAT64) is what that one is; one that holds another in any
    other way (6to4, Teredo, SIIT, ISATAP) is private if the other is.
    """
    return any(_is_special(form) for form in _with_embedded(ip_address(address)))


def literal_address(host: str) -> str | None:
    """Return the address that a host spells out, None for a name.

    It takes every form that the system's resolver takes: 2130706433, 0x7f.1, 0177.0.0.1, ::ffff:127.0.0.1.
    """
    try:
        return str(ip_address(host))
    except ValueError:
        pass
    try:
        return str(IPv4Address(socket.inet_aton(host)))
    except (OSError, UnicodeEncodeError):
        return None


def has_private_address(host: str) -> bool:
    """Return whether the host has a private address, as far as this machine knows. Waits for name servers."""
    literal = literal_address(host)
    if literal is not None:
        return is_private(literal)
    if "." not in host or host.endswith(_PRIVATE_SUFFIXES):  # of a container or service, which has no other
        return True
    try:
        return any(is_private(str(entry[4][0])) for entry in socket.getaddrinfo(host, None))
    except OSError:
        return False


class Resolver:
    """Resolves names to addresses, which hold for CACHE_SECONDS; concurrent calls share one look-up."""

    def __init__(self) -> None:
        self._addresses = RefreshingCache[str, tuple[str, ...]](CACHE_SECONDS, CACHE_SECONDS, MAX_CACHED_HOSTS)

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return all addresses of the host, in the system's order of preference. UpstreamError if the look-up fails."""
        literal = literal_address(host)
        if literal is not None:
            return (literal,)
        return await self._addresses.get(host, lambda: _look_up(host))

    def close(self) -> None:
        """Cancel the look-ups in flight."""
        self._addresses.close()


async def _look_up(host: str) -> tuple[str, ...]:
    try:
        entries = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise network_errors.unknown_host(host, error) from None
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in entries))


def _with_embedded(address: Address) -> Iterator[Address]:
    """Yield an address, and the IPv4 addresses that it holds."""
    yield address
    if isinstance(address, IPv4Address):
        return
    bits = int(address)
    if any(address in network for network in _LAST_32_BITS) or bits >> 32 & 0xFFFFFFFF in _ISATAP:
        yield IPv4Address(bits & 0xFFFFFFFF)
    if address in _NAT64_48:
        yield IPv4Address((bits >> 48 & 0xFFFF0000) | (bits >> 40 & 0xFFFF))
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo


def _is_special(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return any(address in network for network in (*networks.SPECIAL_IPV4, *networks.PLATFORM_IPV4))
    if any(address in network for network in networks.TRANSLATED_IPV6):
        return False  # the IPv4 address in it counts
    return any(address in network for network in networks.SPECIAL_IPV6)


def _is_platform(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return any(address in network for network in networks.PLATFORM_IPV4)
    return any(address in network for network in networks.PLATFORM_IPV6)
