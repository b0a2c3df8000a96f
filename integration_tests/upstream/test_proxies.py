"""Calls through the HTTP proxies that the environment names."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from integration_tests.support.certificates import new_authority
from integration_tests.support.fake_provider import FakeProvider, json_response
from integration_tests.upstream.calls import CONFIG, fetch, post, read_to_end

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import InvalidRequest, Unavailable, UpstreamError
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream import Upstream
from opensearch_ml_stream.plugin.upstream.http1.client import open_upstream

UNVERIFIED = ClientConfig(connection_timeout=600, read_timeout=600, skip_ssl_verification=True)
LOGIN = "Basic " + base64.b64encode(b"us er:p@ss").decode()


@asynccontextmanager
async def upstream_with(settings: Settings = Settings(private_ip_enabled=True)) -> AsyncIterator[Upstream]:  # noqa: B008
    async with open_upstream(LiveSettings(settings)) as upstream:
        yield upstream


class TunnelProxy:
    """Connects to what CONNECT names, on loopback, and keeps the heads of the requests that it got."""

    def __init__(self, response: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> None:
        self.heads: list[bytes] = []
        self._response = response

    async def __aenter__(self) -> "TunnelProxy":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.authority = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        writer.write(self._response)
        if b" 200 " in self._response:
            port = int(head.split()[1].rpartition(b":")[2])
            other, to_other = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.TaskGroup() as ways:
                ways.create_task(_copy(reader, to_other))
                ways.create_task(_copy(other, writer))
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
    except OSError:
        pass
    writer.close()


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    return new_authority().issue("localhost").server_context(tmp_path)


async def test_a_request_of_an_http_url_is_sent_to_the_proxy_with_its_login(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeProvider(json_response({"by": "proxy"})) as proxy, FakeProvider(json_response({})) as direct:
        monkeypatch.setenv("HTTP_PROXY", f"http://us%20er:p%40ss@127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        async with upstream_with() as upstream:
            for _ in range(2):
                async with upstream.open(post("http://localhost:1234/v1?a=b"), CONFIG, {}) as response:
                    assert await read_to_end(response) == b'{"by": "proxy"}'
            await fetch(upstream, direct.url)
    assert proxy.connections == 1
    request = proxy.requests[0]
    assert (request.path, request.headers["host"]) == ("http://localhost:1234/v1?a=b", "localhost:1234")
    assert request.headers["proxy-authorization"] == LOGIN
    assert direct.requests[0].path == "/"
    assert "proxy-authorization" not in direct.requests[0].headers


async def test_a_call_of_an_https_url_goes_through_a_tunnel(
    monkeypatch: pytest.MonkeyPatch, tls: ssl.SSLContext
) -> None:
    async with FakeProvider(json_response({"by": "tunnel"}), tls) as provider, TunnelProxy() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://us%20er:p%40ss@{proxy.authority}")
        async with upstream_with() as upstream:
            for _ in range(2):
                assert await fetch(upstream, provider.url, UNVERIFIED) == (200, b'{"by": "tunnel"}')
            with pytest.raises(UpstreamError, match="is not trusted"):
                await fetch(upstream, provider.url)
    host = f"localhost:{provider.port}"
    assert proxy.heads[0] == (
        f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\nProxy-Authorization: {LOGIN}\r\n\r\n".encode()
    )
    assert len(proxy.heads) == 2  # the connection of the first call served the second
    assert "proxy-authorization" not in provider.requests[0].headers


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        (b"HTTP/1.1 407 Login\r\nContent-Length: 3\r\n\r\nno!", "responded 407 .*Check the login in the proxy's URL"),
        (b"HTTP/1.0 403 Forbidden\r\n\r\n", "responded 403 .*whether the proxy may connect"),
        (b"SSH-2.0\r\n", "did not respond with valid HTTP"),
        (b"", "closed the connection before it responded"),
    ],
)
async def test_a_proxy_that_opens_no_tunnel_is_named(
    monkeypatch: pytest.MonkeyPatch, response: bytes, problem: str
) -> None:
    async with TunnelProxy(response) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:secret@{proxy.authority}")
        async with upstream_with() as upstream:
            with pytest.raises(UpstreamError, match=problem) as raised:
                await fetch(upstream, "https://localhost:1/")
    assert proxy.authority in raised.value.reason
    assert "secret" not in raised.value.reason


async def test_a_proxy_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "127.0.0.1:1")
    async with upstream_with() as upstream:
        with pytest.raises(UpstreamError, match=r"Connection refused: localhost:80 by the HTTP proxy 127\.0\.0\.1:1"):
            await fetch(upstream, "http://localhost/")


@pytest.mark.parametrize(
    ("proxy", "problem"),
    [("https://proxy", "names a proxy by https://"), ("http://proxy:x", "is not the URL of a proxy")],
)
async def test_a_proxy_that_cannot_be_used_is_refused(
    monkeypatch: pytest.MonkeyPatch, proxy: str, problem: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    async with upstream_with() as upstream:
        with pytest.raises(Unavailable, match=f"The environment variable HTTPS_PROXY {problem}"):
            await fetch(upstream, "https://localhost/")


async def test_a_name_that_only_the_proxy_can_resolve_needs_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeProvider(json_response({"by": "proxy"})) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        async with upstream_with(Settings()) as upstream:
            with pytest.raises(InvalidRequest, match=r"set opensearch_ml_stream\.proxy_resolves_names: true"):
                await fetch(upstream, "http://provider.invalid/")
        assert proxy.connections == 0
        async with upstream_with(Settings(proxy_resolves_names=True)) as upstream:
            assert await fetch(upstream, "http://provider.invalid/") == (200, b'{"by": "proxy"}')
            for host in ("localhost", "metadata.google.internal"):
                with pytest.raises(InvalidRequest, match="ip address"):
                    await fetch(upstream, f"http://{host}/")
    assert len(proxy.requests) == 1
