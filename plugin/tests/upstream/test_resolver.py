"""Hosts are resolved once for a burst of calls, and every address of them is known."""

import asyncio
import gc
import socket
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin import refreshing_cache
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.upstream import addresses
from opensearch_ml_stream.plugin.upstream.addresses import AddressPolicy, Resolver
from tests.upstream.virtual_time_loop import now

Entry = tuple[int, int, int, str, tuple[Any, ...]]


class FakeDNS:
    """Stands in for the loop's `getaddrinfo`; a look-up takes one second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lookups: list[str] = []
        self.addresses = ["8.8.8.8", "2606:4700::1111", "8.8.8.8"]
        self.error: Exception | None = None
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", self._getaddrinfo)

    async def _getaddrinfo(self, host: str, port: None, *, type: int) -> list[Entry]:
        assert type == socket.SOCK_STREAM
        self.lookups.append(host)
        await asyncio.sleep(1)
        if self.error is not None:
            raise self.error
        return [(socket.AF_INET, type, 6, "", (address, 0)) for address in self.addresses]


@pytest.fixture
async def dns(monkeypatch: pytest.MonkeyPatch) -> FakeDNS:
    monkeypatch.setattr(refreshing_cache, "monotonic", now)
    return FakeDNS(monkeypatch)


async def test_each_address_is_named_once_in_the_systems_order(dns: FakeDNS) -> None:
    assert await Resolver().resolve("provider.example") == ("8.8.8.8", "2606:4700::1111")


@pytest.mark.parametrize(("host", "address"), [("127.0.0.1", "127.0.0.1"), ("0x7f.1", "127.0.0.1"), ("::1", "::1")])
async def test_an_address_is_not_looked_up(dns: FakeDNS, host: str, address: str) -> None:
    assert await Resolver().resolve(host) == (address,)
    assert dns.lookups == []


async def test_calls_at_the_same_time_share_one_look_up(dns: FakeDNS) -> None:
    resolver = Resolver()
    results = await asyncio.gather(*(resolver.resolve("provider.example") for _ in range(3)))
    assert set(results) == {("8.8.8.8", "2606:4700::1111")}
    assert dns.lookups == ["provider.example"]
    await asyncio.gather(resolver.resolve("a.example"), resolver.resolve("b.example"))
    assert dns.lookups == ["provider.example", "a.example", "b.example"]


async def test_addresses_are_cached_for_a_few_seconds(dns: FakeDNS) -> None:
    resolver = Resolver()
    before = await resolver.resolve("provider.example")
    dns.addresses = ["9.9.9.9"]
    await asyncio.sleep(2.9)
    assert await resolver.resolve("provider.example") == before
    assert (len(dns.lookups), now()) == (1, 3.9)
    await asyncio.sleep(1.1)
    assert await resolver.resolve("provider.example") == ("9.9.9.9",)
    assert (len(dns.lookups), now()) == (2, 6)


async def test_a_host_that_is_used_is_looked_up_again_without_waiting(dns: FakeDNS) -> None:
    resolver = Resolver()
    before = await resolver.resolve("provider.example")
    dns.addresses = ["9.9.9.9"]
    await asyncio.sleep(3.1)
    assert await resolver.resolve("provider.example") == before
    await asyncio.sleep(1)
    assert await resolver.resolve("provider.example") == ("9.9.9.9",)
    assert (len(dns.lookups), now()) == (2, 5.1)


async def test_a_caller_who_is_cancelled_does_not_end_the_look_up_of_others(dns: FakeDNS) -> None:
    resolver = Resolver()
    leaving = asyncio.create_task(resolver.resolve("provider.example"))
    staying = asyncio.create_task(resolver.resolve("provider.example"))
    await asyncio.sleep(0.5)
    leaving.cancel()
    assert await staying == ("8.8.8.8", "2606:4700::1111")
    assert (len(dns.lookups), now()) == (1, 1)


@pytest.mark.parametrize("error", [socket.gaierror(-2, "Name or service not known"), UnicodeError("label too long")])
async def test_a_host_that_is_not_known_is_an_error_for_every_caller_and_not_cached(
    dns: FakeDNS, error: Exception
) -> None:
    resolver = Resolver()
    dns.error = error
    failures = await asyncio.gather(*(resolver.resolve("no.example") for _ in range(2)), return_exceptions=True)
    for failure in failures:
        assert isinstance(failure, UpstreamError)
        assert failure.reason == (
            f"Error communicating with remote model: unknown host: no.example ({error}). "
            "Check the host in the connector's url and this machine's DNS"
        )
    dns.error = None
    assert await resolver.resolve("no.example") == ("8.8.8.8", "2606:4700::1111")
    assert len(dns.lookups) == 2


async def test_a_failure_that_no_one_waits_for_is_not_reported(dns: FakeDNS) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
    dns.error = socket.gaierror(-2, "Name or service not known")
    task = asyncio.create_task(Resolver().resolve("no.example"))
    await asyncio.sleep(0.5)
    task.cancel()
    await asyncio.sleep(1)
    del task
    gc.collect()
    assert reported == []


async def test_a_closed_resolver_ends_its_look_ups(dns: FakeDNS) -> None:
    resolver = Resolver()
    tasks = [asyncio.create_task(resolver.resolve(host)) for host in ("a.example", "b.example")]
    await asyncio.sleep(0.5)
    resolver.close()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError] * 2
    assert now() == 0.5


async def test_the_cache_does_not_grow_without_end(dns: FakeDNS, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "MAX_CACHED_HOSTS", 2)
    resolver = Resolver()
    for host in ("a.example", "b.example"):
        await resolver.resolve(host)
    for host in ("a.example", "b.example"):
        await resolver.resolve(host)
    assert dns.lookups == ["a.example", "b.example"]
    await resolver.resolve("c.example")
    await resolver.resolve("c.example")
    await resolver.resolve("a.example")
    assert dns.lookups == ["a.example", "b.example", "c.example", "a.example"]


def test_a_host_without_addresses_is_the_providers_fault() -> None:
    with pytest.raises(UpstreamError) as raised:
        AddressPolicy().check("provider.example", ())
    assert raised.value.reason == ("Error communicating with remote model: no address found for host provider.example")


def test_the_settings_make_the_policy() -> None:
    settings = Settings(
        private_ip_enabled=True,
        restricted_ip_patterns=("^10",),
        trusted_connector_private_endpoints_regex=("^http://a/$",),
    )
    assert AddressPolicy.of(settings) == AddressPolicy(True, ("^10",), ("^http://a/$",))
    assert AddressPolicy.of(Settings()) == AddressPolicy(False, (), ())
    off = Settings(trusted_connector_private_endpoints_regex=("^http://a/$",))
    assert AddressPolicy.of(off) == AddressPolicy(False, (), ())
