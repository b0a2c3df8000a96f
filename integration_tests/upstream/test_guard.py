"""No connector reaches an address that the settings do not allow, nor by a proxy."""

import asyncio
import socket
from dataclasses import replace
from ipaddress import IPv4Network

import pytest
from integration_tests.support.fake_provider import FakeProvider, head, json_response
from integration_tests.upstream.calls import CONFIG, fetch

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream import addresses, special_purpose_addresses
from opensearch_ml_stream.plugin.upstream.http1.client import open_upstream


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "0.0.0.0", "[::1]"]
)
async def test_a_private_address_is_refused_in_every_spelling(host: str) -> None:
    async with (
        FakeProvider(json_response({})) as provider,
        open_upstream(LiveSettings(Settings())) as up,
    ):
        with pytest.raises(InvalidRequest, match="Remote inference host name has private ip address: ") as raised:
            await fetch(up, f"http://{host}:{provider.port}/")
        assert raised.value.status == 400
        assert provider.connections == 0


async def test_a_changed_setting_is_in_force_at_the_next_request() -> None:
    live = LiveSettings(Settings(private_ip_enabled=True))
    async with FakeProvider(json_response({})) as provider, open_upstream(live) as upstream:
        await fetch(upstream, provider.url)
        live.current = replace(live.current, private_ip_enabled=False)
        with pytest.raises(InvalidRequest):  # also though a connection is open already
            await fetch(upstream, provider.url)
        live.current = replace(live.current, private_ip_enabled=True, restricted_ip_patterns=(r"^127\.",))
        with pytest.raises(InvalidRequest, match="restricted ip address: 127"):
            await fetch(upstream, provider.url)
    assert len(provider.requests) == 1


async def test_an_open_connection_serves_only_urls_that_are_trusted() -> None:
    trusted = (r"^http://127\.0\.0\.1:\d+/good$",)
    settings = Settings(private_ip_enabled=True, trusted_connector_private_endpoints_regex=trusted)
    async with FakeProvider(json_response({})) as provider, open_upstream(LiveSettings(settings)) as upstream:
        await fetch(upstream, provider.url + "/good")
        with pytest.raises(InvalidRequest, match="private endpoint regex"):
            await fetch(upstream, provider.url + "/bad")
        await fetch(upstream, provider.url + "/good")
        for url in ("http://169.254.169.254/good", "http://[::ffff:169.254.169.254]/good"):
            with pytest.raises(InvalidRequest, match="restricted ip address"):
                await fetch(upstream, url)
    assert [request.path for request in provider.requests] == ["/good", "/good"]


async def test_a_host_is_not_looked_up_again_between_check_and_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: a public address for the check, loopback for everyone who asks once more."""
    monkeypatch.setattr(addresses, "CACHE_SECONDS", 0)
    loop = asyncio.get_running_loop()
    answers = iter(["192.0.2.1", *["127.0.0.1"] * 10])
    look_ups: list[str] = []

    async def rebinding(host: str, port: int | None, **options: object) -> object:
        if addresses.literal_address(host) is not None:  # uvloop asks for the form that the kernel takes
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port or 0))]
        look_ups.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port or 0))]

    monkeypatch.setattr(loop, "getaddrinfo", rebinding)
    # 192.0.2.1 stands in for the public address that the attacker's DNS has at first; nothing listens there.
    monkeypatch.setattr(special_purpose_addresses, "SPECIAL_IPV4", (IPv4Network("127.0.0.0/8"),))
    config = replace(CONFIG, connection_timeout=0.3)
    async with (
        FakeProvider(json_response({})) as provider,
        open_upstream(LiveSettings(Settings())) as upstream,
    ):
        for problem in ("connection|route|network", "private ip address: rebinding.example"):
            with pytest.raises(MLStreamError, match=f"(?i){problem}"):
                await fetch(upstream, f"http://rebinding.example:{provider.port}/", config)
        assert provider.connections == 0
    assert look_ups == ["rebinding.example"] * 2


async def test_a_redirect_is_not_followed() -> None:
    settings = Settings(private_ip_enabled=True)
    async with FakeProvider(json_response({})) as inside, open_upstream(LiveSettings(settings)) as upstream:
        away = head(307, location=inside.url, content_length="0")
        async with FakeProvider([away]) as provider:
            assert await fetch(upstream, provider.url) == (307, b"")
    assert inside.connections == 0


async def test_concurrent_calls_of_one_host_share_a_look_up() -> None:
    live = LiveSettings(Settings(private_ip_enabled=True))
    looked_up: list[object] = []
    loop = asyncio.get_running_loop()
    async with FakeProvider(json_response({})) as provider, open_upstream(live) as upstream:
        look_up = loop.getaddrinfo

        async def counted(host: object, *rest: object, **more: object) -> object:
            looked_up.append(host)
            return await look_up(host, *rest, **more)  # type: ignore[arg-type]

        loop.getaddrinfo = counted  # type: ignore[method-assign, assignment]
        await asyncio.gather(*(fetch(upstream, f"http://localhost:{provider.port}/") for _ in range(5)))
    assert looked_up.count("localhost") == 1


async def test_a_proxy_is_no_way_round_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeProvider(json_response({})) as proxy:
        for scheme in ("http", "https"):
            monkeypatch.setenv(f"{scheme}_proxy", proxy.url)
        async with open_upstream(LiveSettings(Settings())) as upstream:
            for host in ("10.0.0.1", "0x7f.1", "localhost"):
                for scheme in ("http", "https"):
                    with pytest.raises(InvalidRequest, match="private ip address"):
                        await fetch(upstream, f"{scheme}://{host}/")
        assert proxy.connections == 0
