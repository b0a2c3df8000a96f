"""Resolves the hosts of providers, and checks every address against the policy that the settings make.

The connection goes to the address that was checked, not to the name, so a DNS response that changes between check and
connection (rebinding) gains nothing.
"""

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.connectors.syntax.regex import compile_regex
from opensearch_ml_stream.plugin.settings import Settings

CACHE_SECONDS = 5.0  # long enough for a burst of requests, short enough for a provider that moves
MAX_CACHED_HOSTS = 1024

# IPv6 addresses that end in the IPv4 address they stand for: IPv4-compatible, NAT64 (RFC 6052).
_EMBEDDING = (IPv6Network("::/96"), IPv6Network("64:ff9b::/96"))
# Local by their RFCs (3879, 8215), which `is_global` of some Python versions does not know.
_LOCAL = (IPv6Network("fec0::/10"), IPv6Network("64:ff9b:1::/48"))

Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """The addresses that connectors may reach. Patterns are RE2.

    `restricted` patterns are searched for in the text of an address, `trusted_private` ones match a whole URL.
    """

    private_allowed: bool = False
    restricted: tuple[str, ...] = ()
    trusted_private: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> "AddressPolicy":
        """Return the policy of the settings."""
        return cls(
            settings.private_ip_enabled,
            settings.restricted_ip_patterns,
            settings.trusted_connector_private_endpoints_regex,
        )

    def check(self, host: str, addresses: tuple[str, ...], url: str) -> None:
        """Raise InvalidRequest if any of the addresses is not allowed, UpstreamError if there are none.

        One forbidden address refuses the host, since a later attempt could connect to that address. `url` is the whole
        URL of the request.
        """
        if not addresses:
            raise UpstreamError(f"Error communicating with remote model: no address found for host {host}")
        if any(_restricted(address, self.restricted) for address in addresses):
            raise InvalidRequest(f"Remote inference host name has restricted ip address: {host}")
        if not any(is_private(address) for address in addresses):
            return
        if not self.private_allowed:
            raise InvalidRequest(f"Remote inference host name has private ip address: {host}")
        if self.trusted_private and not any(compile_regex(one).fullmatch(url) for one in self.trusted_private):
            raise InvalidRequest(
                "Connector URL is not matching the trusted connector private endpoint regex, "
                f"and its host has a private ip address: {host}"
            )


def is_private(address: str) -> bool:
    """Return whether an address is not one of the public internet.

    Those are private, loopback, link-local, shared, reserved and multicast addresses, and any IPv6 address that
    holds one of them (mapped, 6to4, Teredo, NAT64).
    """
    return any(
        not one.is_global or one.is_multicast or any(one in network for network in _LOCAL)
        for one in _with_embedded(ip_address(address))
    )


def literal_address(host: str) -> str | None:
    """Return the address that a host spells out, None for a name.

    Accepts every form that the system's resolver does: 2130706433, 0x7f.1, 0177.0.0.1, ::ffff:127.0.0.1.
    """
    try:
        return str(ip_address(host))
    except ValueError:
        pass
    try:
        return str(IPv4Address(socket.inet_aton(host)))
    except (OSError, UnicodeEncodeError):
        return None


class Resolver:
    """Resolves names to addresses and caches them for CACHE_SECONDS; concurrent calls share one look-up."""

    def __init__(self) -> None:
        self._cache: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._lookups: dict[str, asyncio.Task[tuple[str, ...]]] = {}

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return all addresses of the host, in the system's order of preference. UpstreamError if the look-up fails."""
        literal = literal_address(host)
        if literal is not None:
            return (literal,)
        cached = self._cache.get(host)
        if cached is not None and cached[0] > asyncio.get_running_loop().time():
            return cached[1]
        task = self._lookups.get(host)
        if task is None:
            task = self._lookups[host] = asyncio.create_task(self._look_up(host))
            task.add_done_callback(_retrieve_error)
        return await asyncio.shield(task)

    async def _look_up(self, host: str) -> tuple[str, ...]:
        loop = asyncio.get_running_loop()
        try:
            entries = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise UpstreamError(
                f"Error communicating with remote model: unknown host: {host} ({error}). "
                "Check the host in the connector's url and this machine's DNS"
            ) from None
        finally:
            del self._lookups[host]
        addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in entries))
        if len(self._cache) >= MAX_CACHED_HOSTS:
            self._cache.clear()
        self._cache[host] = (loop.time() + CACHE_SECONDS, addresses)
        return addresses

    def close(self) -> None:
        """Cancel the look-ups in flight."""
        for task in tuple(self._lookups.values()):
            task.cancel()


def _retrieve_error(task: asyncio.Task[tuple[str, ...]]) -> None:
    # Every caller may have been cancelled: asyncio would log the error as never retrieved.
    if not task.cancelled():
        task.exception()


def _with_embedded(address: Address) -> Iterator[Address]:
    yield address
    if isinstance(address, IPv4Address):
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield address.teredo[1]
    if any(address in network for network in _EMBEDDING):
        yield IPv4Address(address.packed[-4:])


def _restricted(address: str, patterns: tuple[str, ...]) -> bool:
    texts = [str(one) for one in _with_embedded(ip_address(address))] if patterns else []
    return any(compile_regex(pattern).search(text) for pattern in patterns for text in texts)
