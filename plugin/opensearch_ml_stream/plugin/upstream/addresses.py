"""Which addresses a connector may reach: the host is resolved here, every address checked, and the checked one used.

The connection goes to the address that was checked, not to the name, so an answer of the DNS that changes between
check and connection (rebinding) gains nothing.
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
    """What the settings allow. Patterns are RE2; `restricted` is searched for in the text of an address."""

    private_allowed: bool = False
    restricted: tuple[str, ...] = ()
    trusted_private: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> "AddressPolicy":
        return cls(
            settings.private_ip_enabled,
            settings.restricted_ip_patterns,
            settings.trusted_connector_private_endpoints_regex,
        )

    def check(self, host: str, addresses: tuple[str, ...], url: str) -> None:
        """InvalidRequest if any of the addresses is not allowed. One is enough: the next try may use it."""
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
    """Not an address of the public internet: private, loopback, link-local, shared, reserved, multicast, or any of
    these inside an IPv6 address (mapped, 6to4, Teredo, NAT64)."""
    return any(
        not one.is_global or one.is_multicast or any(one in network for network in _LOCAL)
        for one in _with_embedded(ip_address(address))
    )


def literal_address(host: str) -> str | None:
    """The address that a host spells out, None for a name.

    Takes every form that the system's resolver takes: 2130706433, 0x7f.1, 0177.0.0.1, ::ffff:127.0.0.1.
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
    """Names to addresses, kept for CACHE_SECONDS; askers of the same name at the same time share one look-up."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._running: dict[str, asyncio.Task[tuple[str, ...]]] = {}

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Every address of the host, in the system's order of preference. UpstreamError if there is none."""
        literal = literal_address(host)
        if literal is not None:
            return (literal,)
        known = self._found.get(host)
        if known is not None and known[0] > asyncio.get_running_loop().time():
            return known[1]
        task = self._running.get(host)
        if task is None:
            task = self._running[host] = asyncio.create_task(self._look_up(host))
            task.add_done_callback(_seen)
        return await asyncio.shield(task)

    async def _look_up(self, host: str) -> tuple[str, ...]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise UpstreamError(
                f"Error communicating with remote model: unknown host: {host} ({error}). "
                "Check the host in the connector's url and this machine's DNS"
            ) from None
        finally:
            del self._running[host]
        addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
        if len(self._found) >= MAX_CACHED_HOSTS:
            self._found.clear()
        self._found[host] = (loop.time() + CACHE_SECONDS, addresses)
        return addresses

    def close(self) -> None:
        """Ends look-ups that are under way."""
        for task in tuple(self._running.values()):
            task.cancel()


def _seen(task: asyncio.Task[tuple[str, ...]]) -> None:
    # Every asker may have left; the failure then has no one to go to, and is no one's loss.
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
