"""TLS connections of the client: bodies that end with them, slow readers, resumed sessions, cancellation."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from integration_tests.support.certificates import Certificate, new_authority
from integration_tests.support.conditions import PATIENCE_SECONDS
from integration_tests.support.fake_provider import Act, FakeProvider, Gate
from integration_tests.upstream.calls import RawServer, comes_to_rest, fetch, post, read_to_end

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream import Upstream
from opensearch_ml_stream.plugin.upstream.http1 import tls_connections
from opensearch_ml_stream.plugin.upstream.http1.client import open_upstream

CONFIG = ClientConfig(connection_timeout=60, read_timeout=60, skip_ssl_verification=True)
BIG = bytes(range(256)) * 8192
CLOSING_HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"


def whole(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return new_authority().issue("localhost")


@pytest.fixture
def tls(certificate: Certificate, tmp_path: Path) -> ssl.SSLContext:
    return certificate.server_context(tmp_path)


class AbruptServer:
    """Sends fixed bytes over TLS, and closes the socket at once, without a close_notify or with one."""

    def __init__(self, tls: ssl.SSLContext, data: bytes, *, notifies: bool = False) -> None:
        self._tls = tls
        self._data = data
        self._notifies = notifies
        self.is_closed = 0
        self.url = ""

    async def __aenter__(self) -> "AbruptServer":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"https://localhost:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        end = self._tls.wrap_bio(incoming, outgoing, server_side=True)
        request = b""
        while not request:
            incoming.write(await reader.read(65536))
            try:
                end.do_handshake()
                request = end.read(65536)
            except ssl.SSLWantReadError:
                pass
            writer.write(outgoing.read())
        end.write(self._data)
        if self._notifies:
            with suppress(ssl.SSLWantReadError):  # the client's is not waited for
                end.unwrap()
        writer.write(outgoing.read())
        await writer.drain()
        writer.close()
        self.is_closed = 1


@pytest.fixture
async def cut_body(tls: ssl.SSLContext) -> AsyncIterator[str]:
    async with AbruptServer(tls, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour") as server:
        yield server.url


async def test_a_body_that_ends_with_its_connection_is_whole(upstream: Upstream, tls: ssl.SSLContext) -> None:
    async with FakeProvider([CLOSING_HEAD, b"the whole", Act.CLOSE], tls) as provider:
        assert await fetch(upstream, provider.url, CONFIG) == (200, b"the whole")


async def test_such_a_body_is_cut_off_without_a_close_notify(upstream: Upstream, tls: ssl.SSLContext) -> None:
    async with (
        AbruptServer(tls, CLOSING_HEAD + b"half") as server,
        upstream.open(post(server.url), CONFIG, {}, "connector") as response,
    ):
        assert await response.read() == b"half"
        with pytest.raises(UpstreamError, match="in the middle of its response"):
            await response.read()


async def test_a_body_that_is_cut_off_is_an_error(upstream: Upstream, cut_body: str) -> None:
    with pytest.raises(UpstreamError, match="in the middle of its response"):
        await fetch(upstream, cut_body, CONFIG)


async def test_a_connection_that_is_reset_is_an_error(upstream: Upstream, tls: ssl.SSLContext) -> None:
    has_read = Gate()
    async with (
        FakeProvider([CLOSING_HEAD, b"half", has_read, Act.RESET], tls) as provider,
        upstream.open(post(provider.url), CONFIG, {}, "connector") as response,
    ):
        assert await response.read() == b"half"
        has_read.open()
        with pytest.raises(UpstreamError, match="in the middle of its response"):
            await response.read()


async def test_a_slow_reader_gets_the_whole_of_a_large_body(upstream: Upstream, tls: ssl.SSLContext) -> None:
    async with (
        FakeProvider([whole(BIG)], tls) as provider,
        upstream.open(post(provider.url), CONFIG, {}, "connector") as response,
    ):
        await comes_to_rest(upstream, lambda: provider.played)
        first = await response.read()
        assert len(first) < len(BIG) // 4  # the rest waits in sockets
        assert first + await read_to_end(response) == BIG


async def test_a_slow_reader_gets_the_whole_of_a_body_whose_connection_has_ended(
    upstream: Upstream, tls: ssl.SSLContext
) -> None:
    body = BIG[: 200 * 1024]  # more than is read before a pause, less than sockets hold
    async with (
        AbruptServer(tls, CLOSING_HEAD + body, notifies=True) as server,
        upstream.open(post(server.url), CONFIG, {}, "connector") as response,
    ):
        await comes_to_rest(upstream, lambda: server.is_closed)
        assert await read_to_end(response) == body


async def test_large_requests_reach_the_provider(upstream: Upstream, tls: ssl.SSLContext) -> None:
    async with FakeProvider([whole(b"ok")], tls) as provider:
        async with upstream.open(post(provider.url, BIG), CONFIG, {}, "connector") as response:
            assert await read_to_end(response) == b"ok"
        assert provider.requests[0].body == BIG


async def test_a_connection_is_kept_for_the_next_request(upstream: Upstream, tls: ssl.SSLContext) -> None:
    async with FakeProvider([whole(b"ok")], tls) as provider:
        for _ in range(5):
            assert await fetch(upstream, provider.url, CONFIG) == (200, b"ok")
        assert provider.connections == 1


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_new_connections_resume_the_session_of_the_first(
    upstream: Upstream, tls: ssl.SSLContext, version: ssl.TLSVersion
) -> None:
    tls.maximum_version = version
    async with FakeProvider([CLOSING_HEAD, b"ok", Act.CLOSE], tls) as provider:
        for _ in range(5):
            assert await fetch(upstream, provider.url, CONFIG) == (200, b"ok")
        assert provider.connections == 5
    assert tls.session_stats()["hits"] == 4


async def test_a_session_that_a_server_does_not_know_is_no_obstacle(
    upstream: Upstream, certificate: Certificate, tmp_path: Path
) -> None:
    for _ in range(2):  # each has a key of its own for its tickets
        async with FakeProvider([CLOSING_HEAD, b"ok", Act.CLOSE], certificate.server_context(tmp_path)) as provider:
            for _ in range(2):
                assert await fetch(upstream, provider.url, CONFIG) == (200, b"ok")


class SilentServer:
    """Accepts connections, counts those on which a handshake has begun, and never responds."""

    def __init__(self) -> None:
        self.begun = 0
        self._count = asyncio.Condition()
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> "SilentServer":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"https://localhost:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.hang_up()

    def hang_up(self) -> None:
        """Close all connections."""
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def has_begun(self, count: int) -> None:
        """Return once so many handshakes have begun."""
        async with self._count:
            await self._count.wait_for(lambda: self.begun >= count)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        if await reader.read(1):
            self.begun += 1
            async with self._count:
                self._count.notify_all()


async def test_so_many_handshakes_are_in_progress_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_connections, "MAX_HANDSHAKES", 4)
    monkeypatch.setattr(tls_connections, "COUNTED_SECONDS", 600)
    async with open_upstream(LiveSettings(Settings(private_ip_enabled=True))) as upstream, SilentServer() as server:
        calls = [asyncio.create_task(fetch(upstream, server.url, CONFIG)) for _ in range(6)]
        await server.has_begun(4)
        await comes_to_rest(upstream, lambda: server.begun)
        assert server.begun == 4
        calls[0].cancel()
        await server.has_begun(5)
        server.hang_up()  # also on the one whose handshake has not begun
        for call in calls[1:]:
            with pytest.raises(UpstreamError, match="Connection reset"):
                await call


async def test_servers_that_do_not_respond_keep_no_others_waiting(
    tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_connections, "MAX_HANDSHAKES", 2)
    monkeypatch.setattr(tls_connections, "COUNTED_SECONDS", 0.01)
    async with (
        open_upstream(LiveSettings(Settings(private_ip_enabled=True))) as upstream,
        SilentServer() as server,
        FakeProvider([whole(b"ok")], tls) as provider,
    ):
        calls = [asyncio.create_task(fetch(upstream, server.url, CONFIG)) for _ in range(5)]
        await server.has_begun(5)
        assert await fetch(upstream, provider.url, CONFIG) == (200, b"ok")
        server.hang_up()
        await asyncio.gather(*calls, return_exceptions=True)


async def test_many_connections_at_once_all_come_about(upstream: Upstream, tls: ssl.SSLContext) -> None:
    async with FakeProvider([whole(b"ok")], tls) as provider:
        results = await asyncio.gather(*(fetch(upstream, provider.url, CONFIG) for _ in range(50)))
    assert results == [(200, b"ok")] * 50


async def test_a_call_that_is_cancelled_in_the_handshake_closes_its_connection(upstream: Upstream) -> None:
    closed = asyncio.Event()

    async def never_respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)  # the ClientHello has begun
        connected.set()
        while await reader.read(65536):
            pass
        closed.set()
        writer.close()

    connected = asyncio.Event()
    server = await asyncio.start_server(never_respond, "127.0.0.1", 0)
    async with server:
        url = f"https://localhost:{server.sockets[0].getsockname()[1]}"
        call = asyncio.create_task(fetch(upstream, url, CONFIG))
        await connected.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(closed.wait(), PATIENCE_SECONDS)


async def test_a_handshake_that_is_not_responded_to_is_a_connect_timeout(upstream: Upstream) -> None:
    async def never_respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        over.set()

    over = asyncio.Event()
    async with await asyncio.start_server(never_respond, "127.0.0.1", 0) as server:
        url = f"https://localhost:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(UpstreamError, match="Connect timeout: no connection"):
            await fetch(upstream, url, ClientConfig(connection_timeout=0.1, read_timeout=5))
        await asyncio.wait_for(over.wait(), PATIENCE_SECONDS)


async def test_a_provider_that_hangs_up_in_the_handshake_has_reset_it(upstream: Upstream) -> None:
    async with RawServer(b"") as server:
        with pytest.raises(UpstreamError, match="Connection reset") as raised:
            await fetch(upstream, f"https://127.0.0.1:{server.port}/", CONFIG)
    assert "Check that the port speaks the url's protocol" in raised.value.reason
