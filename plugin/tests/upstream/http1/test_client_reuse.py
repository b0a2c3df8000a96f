"""Which idle connection the client takes, and what it does when that was closed unnoticed."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.upstream import ReadTimedOut
from opensearch_ml_stream.plugin.upstream.addresses import AddressPolicy
from opensearch_ml_stream.plugin.upstream.http1.pool import Route
from opensearch_ml_stream.plugin.upstream.target import parse_target
from opensearch_ml_stream.plugin.upstream.tls_contexts import PLAIN, UNVERIFIED
from tests.upstream.fake_transport import FakeTransport
from tests.upstream.scripted_upstream import (
    ADDRESS,
    CONFIG,
    REQUEST,
    RESPONSE,
    SENT,
    URL,
    ScriptedUpstream,
    fetch,
)


def later(seconds: float, event: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(seconds, event)


async def upstream_with_idle_connection(*scripts: list[bytes]) -> ScriptedUpstream:
    """Its idle connection receives nothing after the next request."""
    upstream = ScriptedUpstream([RESPONSE], *scripts)
    await fetch(upstream)
    await asyncio.sleep(20)
    return upstream


@pytest.mark.parametrize("event", [FakeTransport.receive_eof, FakeTransport.reset], ids=["closed", "broken"])
@pytest.mark.parametrize("seconds", [0, 1])
async def test_a_request_whose_reused_connection_closes_at_once_is_sent_once_more(
    event: Callable[[FakeTransport], None], seconds: float
) -> None:
    upstream = await upstream_with_idle_connection([RESPONSE])
    stale = upstream.transports[0]
    later(seconds, lambda: event(stale))
    assert await fetch(upstream) == b"ok"
    assert [transport.written for transport in upstream.transports] == [[SENT, SENT], [SENT]]
    assert "abort" in stale.calls
    assert (upstream.limiter.acquired("connector"), len(upstream.pool)) == (0, 1)


async def test_a_request_is_sent_once_more_only_once() -> None:
    upstream = await upstream_with_idle_connection([])
    later(0, upstream.transports[0].receive_eof)
    task = asyncio.create_task(fetch(upstream))
    await asyncio.sleep(0.1)
    upstream.transports[1].receive_eof()
    with pytest.raises(UpstreamError, match="before it responded"):
        await task
    assert len(upstream.connects) == 2
    assert upstream.limiter.acquired("connector") == 0


async def test_a_request_is_not_sent_again_when_the_provider_may_have_worked_on_it() -> None:
    upstream = await upstream_with_idle_connection([RESPONSE])
    later(1.01, upstream.transports[0].receive_eof)
    with pytest.raises(UpstreamError, match="before it responded"):
        await fetch(upstream)
    assert len(upstream.connects) == 1
    assert (upstream.limiter.acquired("connector"), len(upstream.pool)) == (0, 0)


async def test_a_provider_that_is_silent_for_a_short_read_timeout_is_not_asked_again() -> None:
    upstream = await upstream_with_idle_connection([RESPONSE])
    with pytest.raises(ReadTimedOut):
        await fetch(upstream, config=replace(CONFIG, read_timeout=0.5))
    assert [transport.written for transport in upstream.transports] == [[SENT, SENT]]


async def test_a_request_is_not_sent_again_once_a_byte_was_received() -> None:
    upstream = await upstream_with_idle_connection([RESPONSE])
    later(0, lambda: upstream.transports[0].receive(b"H"))
    later(0.1, upstream.transports[0].receive_eof)
    with pytest.raises(UpstreamError, match="before it responded"):
        await fetch(upstream)
    assert len(upstream.connects) == 1


async def test_a_request_is_not_sent_again_on_a_new_connection_that_closes() -> None:
    upstream = ScriptedUpstream([], [RESPONSE])
    task = asyncio.create_task(fetch(upstream))
    await asyncio.sleep(0)
    upstream.transports[0].receive_eof()
    with pytest.raises(UpstreamError, match="before it responded"):
        await task
    assert len(upstream.connects) == 1
    assert upstream.limiter.acquired("connector") == 0


async def test_an_idle_connection_that_has_closed_is_replaced() -> None:
    upstream = await upstream_with_idle_connection([RESPONSE])
    upstream.transports[0].receive_eof()
    assert await fetch(upstream) == b"ok"
    assert [transport.written for transport in upstream.transports] == [[SENT], [SENT]]


async def test_a_connection_serves_only_the_policy_under_which_it_was_allowed() -> None:
    upstream = await upstream_with_idle_connection([RESPONSE])
    assert upstream.prepared.policy() is upstream.prepared.policy()
    upstream.live.current = Settings(restricted_ip_patterns=("^93",))
    assert upstream.prepared.policy() == AddressPolicy(restricted=("^93",))
    assert upstream.prepared.policy() is upstream.prepared.policy()
    await fetch(upstream)
    assert len(upstream.connects) == 2
    assert [route.policy for _, route, _ in upstream.connects] == [AddressPolicy(), upstream.prepared.policy()]


async def test_a_setting_that_is_not_about_addresses_costs_no_connection() -> None:
    upstream = ScriptedUpstream([RESPONSE, RESPONSE])
    await fetch(upstream)
    upstream.live.current = Settings(stream_enabled=False)
    await fetch(upstream)
    assert len(upstream.connects) == 1


async def test_a_reused_private_connection_needs_a_url_that_is_trusted() -> None:
    settings = Settings(
        private_ip_enabled=True, trusted_connector_private_endpoints_regex=(r"^http://provider\.example/v1/.*$",)
    )
    upstream = ScriptedUpstream([RESPONSE, RESPONSE], [RESPONSE], settings=settings, address="10.0.0.1")
    await fetch(upstream)
    await fetch(upstream, replace(REQUEST, url="http://provider.example/v1/other"))
    assert len(upstream.connects) == 1
    await fetch(upstream, replace(REQUEST, url="http://provider.example/admin"))
    assert [route.policy.private_allowed for _, route, _ in upstream.connects] == [True, False]


async def test_a_new_connection_is_for_the_target_its_route_and_the_time_that_it_may_take() -> None:
    upstream = ScriptedUpstream([RESPONSE])
    await fetch(upstream)
    route = Route("connector", "http", "provider.example", 80, PLAIN, AddressPolicy())
    assert upstream.connects == [(parse_target(URL), route, 10)]


@pytest.mark.parametrize(("scheme", "key"), [("http", PLAIN), ("https", UNVERIFIED)])
async def test_tls_makes_a_difference_where_it_is_spoken(scheme: str, key: object) -> None:
    upstream = ScriptedUpstream([RESPONSE, RESPONSE], [RESPONSE])
    request = replace(REQUEST, url=f"{scheme}://provider.example/")
    await fetch(upstream, request)
    await fetch(upstream, request, replace(CONFIG, skip_ssl_verification=True))
    assert upstream.connects[-1][1].tls == key
    assert len(upstream.connects) == (1 if scheme == "http" else 2)


async def test_a_closed_upstream_closes_its_idle_connections_and_keeps_none() -> None:
    upstream = ScriptedUpstream([RESPONSE], [RESPONSE])
    await fetch(upstream)
    async with upstream.open(replace(REQUEST, url="http://other.example/"), CONFIG, {}, "connector") as response:
        upstream.close()
        assert upstream.transports[0].calls[-1] == "abort"
        assert not upstream.transports[1].is_closing()
        assert await response.read() == b"ok"
    assert upstream.transports[1].calls[-1] == "abort"
    assert len(upstream.pool) == 0


async def test_the_address_of_a_connection_is_the_one_that_was_checked() -> None:
    upstream = await upstream_with_idle_connection()
    connection = upstream.pool.take(upstream.connects[0][1])
    assert connection is not None and connection.address == ADDRESS
