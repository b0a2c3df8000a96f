"""The aiohttp client keeps the same promises as the native one; its session is a fake here."""

import asyncio
import errno
import gzip
import ssl
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from multidict import CIMultiDict
from yarl import URL

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import InvalidRequest, Throttled, UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.upstream import ReadTimedOut
from opensearch_ml_stream.plugin.upstream.addresses import AddressPolicy, Resolver
from opensearch_ml_stream.plugin.upstream.clients.aiohttp_client import MAX_SESSIONS, _CheckedResolver
from opensearch_ml_stream.plugin.upstream.http1.content_coding import MAX_READ_BYTES
from opensearch_ml_stream.plugin.upstream.network_errors import BrokenConnection
from opensearch_ml_stream.plugin.upstream.tls import PLAIN
from tests.upstream.fake_aiohttp import FakeResponse, FakeSession, get, upstream_over
from tests.upstream.scripted_upstream import CONFIG, fetch
from tests.upstream.virtual_time_loop import now

PREFIX = "Error communicating with remote model: "
PROXIES = {"http": "http://proxy:3128"}
KEY = ConnectionKey("8.8.8.8", 80, False, True, None, None, None)


def self_signed() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed"
    return error


async def test_a_request_is_the_connectors_and_nothing_of_aiohttps_own() -> None:
    session = FakeSession(FakeResponse(b"on", b"e"))
    upstream = upstream_over(session)
    async with upstream.open(get(), CONFIG, {}, "connector") as response:
        assert response.status == 200
        assert [await response.read(), await response.read(), await response.read()] == [b"on", b"e", b""]
    ((method, url, options),) = session.requests
    assert (method, str(url)) == ("GET", "http://8.8.8.8/v1?a=b%20c")
    assert list(options["headers"].items()) == [("Host", "8.8.8.8"), ("X-Key", "k"), ("Accept-Encoding", "identity")]
    assert options["timeout"] == aiohttp.ClientTimeout(sock_connect=10, sock_read=30)
    assert (options["data"], options["ssl"], options["proxy"], options["allow_redirects"]) == (None, True, None, False)


async def test_a_body_is_sent_as_a_file_and_https_with_the_context_of_its_key() -> None:
    session = FakeSession(FakeResponse())
    upstream = upstream_over(session)
    await fetch(upstream, ProviderRequest("POST", "https://8.8.8.8:8443/", {}, b"{}"))
    ((_, url, options),) = session.requests
    assert str(url) == "https://8.8.8.8:8443/"
    assert options["data"].read() == b"{}"
    assert options["ssl"] is await upstream._contexts.get(PLAIN)


async def test_headers_are_in_lower_case_and_joined() -> None:
    response = FakeResponse()
    response.headers = CIMultiDict[str]([("X-One", "a"), ("x-one", "b"), ("Content-Type", "c")])
    async with upstream_over(FakeSession(response)).open(get(), CONFIG, {}) as opened:
        assert opened.headers == {"x-one": "a, b", "content-type": "c"}


async def test_a_response_is_closed_when_it_is_left_and_the_limiter_released() -> None:
    response = FakeResponse(b"one")
    upstream = upstream_over(FakeSession(response))
    with pytest.raises(ZeroDivisionError):
        async with upstream.open(get(), CONFIG, {}, "connector"):
            assert upstream._limiter.acquired("connector") == 1
            raise ZeroDivisionError
    assert response.closed
    assert upstream._limiter.acquired("connector") == 0


async def test_a_connector_has_no_more_connections_than_it_may() -> None:
    upstream = upstream_over(FakeSession(FakeResponse(), FakeResponse()))
    config = ClientConfig(max_connection=1, connection_timeout=3)
    async with upstream.open(get(), config, {}, "connector"):
        with pytest.raises(Throttled):
            await fetch(upstream, get(), config)
        assert now() == 3
        assert await fetch(upstream, get(), config, pool_key="another") == b""


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (
            aiohttp.ConnectionTimeoutError(),
            BrokenConnection,
            "Connect timeout: no connection to 8.8.8.8:80 within 10 s",
        ),
        (TimeoutError(), ReadTimedOut, "Read timeout: 8.8.8.8:80 sent nothing for 30 s"),
        (aiohttp.SocketTimeoutError(), ReadTimedOut, "Read timeout: 8.8.8.8:80 sent nothing for 30 s"),
        (
            aiohttp.ClientConnectorError(KEY, OSError(errno.ECONNREFUSED, "x")),
            BrokenConnection,
            "Connection refused: 8.8.8.8:80. ",
        ),
        (
            aiohttp.ClientConnectorCertificateError(KEY, self_signed()),
            BrokenConnection,
            "TLS certificate of 8.8.8.8:80 is not trusted: self-signed. ",
        ),
        (
            aiohttp.ClientResponseError(cast(Any, SimpleNamespace(real_url=URL("http://h"))), ()),
            BrokenConnection,
            "8.8.8.8:80 did not respond with valid HTTP/1.1: the head cannot be read. ",
        ),
        (aiohttp.ServerDisconnectedError(), BrokenConnection, "8.8.8.8:80 closed the connection before it responded"),
        (ConnectionResetError(), BrokenConnection, "8.8.8.8:80 closed the connection before it responded"),
    ],
)
async def test_an_error_before_the_head_is_the_providers(error: Exception, kind: type, reason: str) -> None:
    upstream = upstream_over(FakeSession(error))
    with pytest.raises(UpstreamError) as raised:
        await fetch(upstream, get())
    assert type(raised.value) is kind
    assert raised.value.reason.startswith(PREFIX + reason)
    assert upstream._limiter.acquired("connector") == 0


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (aiohttp.SocketTimeoutError(), ReadTimedOut, "Read timeout: 8.8.8.8:80 sent nothing for 30 s"),
        (
            aiohttp.ClientPayloadError(),
            BrokenConnection,
            "8.8.8.8:80 closed the connection in the middle of its response",
        ),
        (
            ConnectionResetError(),
            BrokenConnection,
            "8.8.8.8:80 closed the connection in the middle of its response",
        ),
    ],
)
async def test_an_error_in_the_body_is_the_providers(error: Exception, kind: type, reason: str) -> None:
    response = FakeResponse(b"one", error)
    with pytest.raises(UpstreamError) as raised:
        await fetch(upstream_over(FakeSession(response)), get())
    assert type(raised.value) is kind
    assert raised.value.reason.startswith(PREFIX + reason)
    assert response.closed


async def test_a_compressed_body_is_decompressed_in_bounded_pieces() -> None:
    """By ourselves: aiohttp would decompress all of a read at once, a gigabyte of a mebibyte."""
    response = FakeResponse(gzip.compress(bytes(3 * MAX_READ_BYTES)), headers={"Content-Encoding": "gzip"})
    async with upstream_over(FakeSession(response)).open(get(), CONFIG, {}) as opened:
        assert [len(await opened.read()) for _ in range(4)] == [MAX_READ_BYTES] * 3 + [0]


async def test_a_body_that_is_not_what_its_coding_says_is_an_error() -> None:
    response = FakeResponse(b"plain text", headers={"Content-Encoding": "gzip"})
    with pytest.raises(UpstreamError, match=r"content-encoding \[gzip\] that cannot be decoded"):
        await fetch(upstream_over(FakeSession(response)), get())
    assert response.closed


async def test_a_body_can_be_pumped() -> None:
    parts: list[bytes] = []

    def sink(data: bytes) -> bool:
        parts.append(data)
        return len(parts) > 1

    async with upstream_over(FakeSession(FakeResponse(b"a", b"b"))).open(get(), CONFIG, {}) as response:
        assert [await response.pump(sink), await response.pump(sink)] == [False, True]
    assert parts == [b"a", b"b"]


async def test_an_address_that_is_not_allowed_is_never_called() -> None:
    session = FakeSession()
    with pytest.raises(InvalidRequest, match=r"private ip address: 10\.0\.0\.1$"):
        await fetch(upstream_over(session), get("http://10.0.0.1/"))
    assert session.requests == []


async def unknown_host(host: str, port: None, *, type: int) -> list[Any]:
    raise OSError(errno.ENOENT, "unknown")


async def test_a_proxy_is_used_where_the_environment_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    session = FakeSession(FakeResponse())
    upstream = upstream_over(session, proxies=PROXIES)
    await fetch(upstream, get())
    assert session.requests[0][2]["proxy"] == "http://proxy:3128"
    with pytest.raises(InvalidRequest, match="private ip address"):
        await fetch(upstream, get("http://10.0.0.1/"))


async def test_a_name_that_only_the_proxy_knows_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown_host)
    session = FakeSession(FakeResponse())
    await fetch(upstream_over(session, proxies=PROXIES), get("http://inside.example/"))
    assert session.requests[0][2]["proxy"] == "http://proxy:3128"
    for host in ("metadata.google.internal", "localhost"):
        with pytest.raises(InvalidRequest, match="ip address"):
            await fetch(upstream_over(session, proxies=PROXIES), get(f"http://{host}/"))


async def test_a_proxys_own_host_may_have_any_address_and_shares_no_session_with_direct_calls() -> None:
    session = FakeSession(FakeResponse(), FakeResponse())
    upstream = upstream_over(session, proxies={**PROXIES, "no": "9.9.9.9"})
    await fetch(upstream, get())
    await fetch(upstream, get("http://9.9.9.9/"))
    by_proxy, direct = session.resolvers
    assert [result["host"] for result in await by_proxy.resolve("10.0.0.1", 3128)] == ["10.0.0.1"]
    with pytest.raises(InvalidRequest, match="private ip address"):
        await direct.resolve("10.0.0.1", 3128)


async def test_each_address_policy_has_a_session_and_with_it_connections_of_its_own() -> None:
    session = FakeSession(*(FakeResponse() for _ in range(4 + MAX_SESSIONS)))
    upstream = upstream_over(session)
    for settings in (Settings(), Settings(stream_enabled=False), Settings(private_ip_enabled=True), Settings()):
        upstream._live.current = settings
        await fetch(upstream, get())
    assert len(session.resolvers) == 2
    for number in range(MAX_SESSIONS):
        upstream._live.current = Settings(restricted_ip_patterns=(f"^{number}$",))
        await fetch(upstream, get())
    assert session.closed == 2
    await upstream.close()
    assert session.closed == 2 + MAX_SESSIONS


async def test_aiohttp_connects_to_the_addresses_that_were_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = _CheckedResolver(Resolver(), AddressPolicy(private_allowed=True))
    assert [dict(result) for result in await resolver.resolve("127.0.0.1", 80)] == [
        {"hostname": "127.0.0.1", "host": "127.0.0.1", "port": 80, "family": 2, "proto": 6, "flags": 4}
    ]
    (result,) = await resolver.resolve("::1", 443)
    assert (result["host"], result["family"], result["port"]) == ("::1", 10, 443)
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown_host)
    with pytest.raises(OSError, match=r"unknown host: no\.example"):
        await resolver.resolve("no.example")
    await resolver.close()
