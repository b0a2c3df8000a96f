"""The client connects to the addresses that the policy allows, and to no others."""

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream.addresses import Resolver
from opensearch_ml_stream.plugin.upstream.http1.client import HTTPUpstream, open_upstream
from opensearch_ml_stream.plugin.upstream.http1.connection import Connection
from opensearch_ml_stream.plugin.upstream.tls_contexts import PLAIN, TLSContexts
from tests.upstream.fake_transport import FakeTransport
from tests.upstream.scripted_upstream import RESPONSE, SENT, fetch
from tests.upstream.tls_ends import Provider, SecureTCP, contexts


class FakeNetwork:
    """Stands in for the loop's look-ups and connections; every provider responds at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
        self.connects: list[tuple[str, int, dict[str, Any]]] = []
        self.transports: list[FakeTransport] = []
        self._addresses = addresses
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "getaddrinfo", self._getaddrinfo)
        monkeypatch.setattr(loop, "create_connection", self._create_connection)

    async def _getaddrinfo(self, host: str, port: None, *, type: int) -> list[tuple[int, int, int, str, Any]]:
        return [(2, type, 6, "", (address, 0)) for address in self._addresses]

    async def _create_connection(
        self, factory: Callable[[], Connection], address: str, port: int, **options: Any
    ) -> tuple[FakeTransport, Connection]:
        self.connects.append((address, port, options))
        connection = factory()
        transport = FakeTransport(connection, [RESPONSE])
        self.transports.append(transport)
        connection.connection_made(transport)
        return transport, connection


class SecureNetwork(FakeNetwork):
    """Its provider speaks TLS."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, server: ssl.SSLContext) -> None:
        super().__init__(monkeypatch, "8.8.8.8")
        self._server = server

    async def _create_connection(
        self, factory: Callable[[], Connection], address: str, port: int, **options: Any
    ) -> tuple[FakeTransport, Connection]:
        self.connects.append((address, port, options))
        connection = factory()
        transport = SecureTCP(connection, Provider(self._server), RESPONSE)
        connection.connection_made(transport)
        return transport, connection


def client(settings: Settings | None = None) -> tuple[HTTPUpstream, TLSContexts]:
    contexts = TLSContexts()
    return HTTPUpstream(LiveSettings(settings or Settings()), Resolver(), contexts), contexts


def get(url: str) -> ProviderRequest:
    return ProviderRequest("GET", url, {}, b"")


async def test_a_provider_is_reached_at_its_first_address(monkeypatch: pytest.MonkeyPatch) -> None:
    network = FakeNetwork(monkeypatch, "8.8.8.8", "8.8.4.4")
    upstream, _ = client()
    assert await fetch(upstream) == b"ok"
    assert network.connects == [("8.8.8.8", 80, {})]
    assert network.transports[0].written == [SENT]


async def test_a_provider_over_tls_is_trusted_by_the_context_of_its_route(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trusting, server = contexts(tmp_path)
    network = SecureNetwork(monkeypatch, server)
    upstream, trusted = client()
    with pytest.raises(UpstreamError, match="is not trusted"):
        await fetch(upstream, get("https://provider.example:8443/"))
    assert (await trusted.get(PLAIN)).verify_mode is ssl.CERT_REQUIRED
    monkeypatch.setattr(trusted, "_contexts", OrderedDict({PLAIN: trusting}))
    for _ in range(2):
        assert await fetch(upstream, get("https://provider.example:8443/")) == b"ok"
    assert network.connects == [("8.8.8.8", 8443, {})] * 2


@pytest.mark.parametrize(
    ("settings", "addresses", "problem"),
    [
        (Settings(), ["8.8.8.8", "10.0.0.1"], "private ip address: provider.example"),
        (Settings(restricted_ip_patterns=("^8",)), ["8.8.8.8"], "restricted ip address: provider.example"),
        (
            Settings(private_ip_enabled=True, trusted_connector_private_endpoints_regex=("^http://other/.*$",)),
            ["10.0.0.1"],
            "trusted connector private endpoint regex",
        ),
        (Settings(), [], "no address found for host provider.example"),
    ],
)
async def test_an_address_that_is_not_allowed_is_never_connected_to(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, addresses: list[str], problem: str
) -> None:
    network = FakeNetwork(monkeypatch, *addresses)
    upstream, _ = client(settings)
    with pytest.raises(MLStreamError, match=problem):
        await fetch(upstream, get("http://provider.example/v1"))
    assert network.connects == []
    assert upstream.limiter.acquired("connector") == 0


async def test_a_host_that_is_an_address_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    network = FakeNetwork(monkeypatch)
    upstream, _ = client()
    with pytest.raises(InvalidRequest, match=r"private ip address: 127\.1$"):
        await fetch(upstream, get("http://127.1/"))
    assert network.connects == []


async def test_the_upstream_is_closed_with_its_context() -> None:
    async with open_upstream(LiveSettings(Settings())) as upstream:
        assert isinstance(upstream, HTTPUpstream)
        assert not upstream.pool._closed
    assert upstream.pool._closed
