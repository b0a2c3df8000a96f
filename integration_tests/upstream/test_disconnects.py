"""A caller that disconnects ends the provider's work, and no connection or permit is lost."""

import asyncio
import contextlib
import random
import socket

import pytest
from integration_tests.support.conditions import PATIENCE_SECONDS, eventually_async
from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    Act,
    FakeProvider,
    Gate,
    Request,
    Script,
    Step,
    chunk,
    chunked_stream,
    head,
    json_response,
    openai_stream,
)
from integration_tests.upstream.calls import CONFIG, comes_to_rest, fetch, post, read_to_end

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import MLStreamError, Throttled
from opensearch_ml_stream.plugin.upstream import Upstream
from opensearch_ml_stream.plugin.upstream.http1.client import HTTPUpstream

SILENT: list[Step] = [head(transfer_encoding="chunked") + chunk(b"data: 1\n\n"), Act.WAIT]


async def test_a_disconnect_in_the_middle_of_a_silent_stream_closes_it(upstream: Upstream) -> None:
    async with FakeProvider(SILENT) as provider:
        with contextlib.suppress(ZeroDivisionError):
            async with upstream.open(post(provider.url), CONFIG, {}) as response:
                await response.read()
                raise ZeroDivisionError
        await asyncio.wait_for(provider.disconnected.wait(), PATIENCE_SECONDS)


@pytest.mark.parametrize(
    ("script", "received"),
    [
        pytest.param(SILENT, b"data: 1\n\n", id="while reading"),
        pytest.param([Act.WAIT], b"", id="while waiting for the head"),
    ],
)
async def test_a_cancelled_call_closes_the_connection(upstream: Upstream, script: Script, received: bytes) -> None:
    body = b""

    async def call(url: str) -> None:
        nonlocal body
        async with upstream.open(post(url), CONFIG, {}) as response:
            while data := await response.read():
                body += data

    async with FakeProvider(script) as provider:
        task = asyncio.create_task(call(provider.url))
        await eventually_async(lambda: provider.called.is_set() and body == received)
        task.cancel()
        await asyncio.wait_for(provider.disconnected.wait(), PATIENCE_SECONDS)
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_disconnect_during_the_tls_handshake_closes_the_connection(upstream: Upstream) -> None:
    greeted, disconnected = asyncio.Event(), asyncio.Event()

    async def never_respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read(1)
            greeted.set()
            await reader.read()
        disconnected.set()
        writer.close()

    server = await asyncio.start_server(never_respond, "127.0.0.1", 0)
    task = asyncio.create_task(fetch(upstream, f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))
    await asyncio.wait_for(greeted.wait(), PATIENCE_SECONDS)
    task.cancel()
    await asyncio.wait_for(disconnected.wait(), PATIENCE_SECONDS)
    with pytest.raises(asyncio.CancelledError):
        await task
    server.close()


async def test_a_connection_that_takes_too_long_is_given_up(upstream: Upstream) -> None:
    with socket.socket() as full:  # a listener whose queue is full accepts no one
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        config = ClientConfig(connection_timeout=0.1, read_timeout=5)
        with pytest.raises(MLStreamError, match=r"Connect timeout: no connection to 127\.0\.0\.1:\d+ within 0\.1 s"):
            await fetch(upstream, f"http://127.0.0.1:{address[1]}/", config)
        for one in waiting:
            one.close()


async def test_a_connection_is_reused_after_a_reader_that_stopped_at_the_terminator(upstream: Upstream) -> None:
    """`[DONE]` comes before the body's own end; the connection is worth waiting a moment for it."""
    assert isinstance(upstream, HTTPUpstream)
    gates: list[Gate] = []

    def script(_: Request) -> Script:
        gates.append(Gate())
        return [*openai_stream(["a"])[:-1], gates[-1], LAST_CHUNK]

    async def is_reused() -> bool:
        """False also where the end came after that moment, as it may on a busy machine."""
        async with upstream.open(post(provider.url), CONFIG, {}) as response:
            body = b""
            while b"[DONE]" not in body:
                body += await response.read()
        gates[-1].open()
        await eventually_async(lambda: len(upstream.pool) == 1 or provider.open_connections == 0)
        return provider.connections < len(provider.requests)

    async with FakeProvider(script) as provider:
        await eventually_async(is_reused)


async def test_a_reader_that_stops_in_a_stream_that_goes_on_closes_it(upstream: Upstream) -> None:
    async with FakeProvider(chunked_stream([b"x" * 2000] * 50, pause=0.02)) as provider:
        async with upstream.open(post(provider.url), CONFIG, {}) as response:
            await response.read()
        await asyncio.wait_for(provider.disconnected.wait(), PATIENCE_SECONDS)


async def test_no_more_connections_are_open_than_the_connector_allows(upstream: Upstream) -> None:
    config = ClientConfig(max_connection=2, connection_timeout=10, read_timeout=10)
    async with FakeProvider([head(transfer_encoding="chunked"), 0.03, LAST_CHUNK]) as provider:
        most = 0

        async def call() -> None:
            nonlocal most
            await fetch(upstream, provider.url, config)
            most = max(most, provider.open_connections)

        await asyncio.gather(*(call() for _ in range(6)))
    assert most == 2
    assert len(provider.requests) == 6


async def test_a_call_that_gets_no_free_connection_in_time_is_throttled(upstream: Upstream) -> None:
    patient = ClientConfig(max_connection=1, connection_timeout=10, read_timeout=10)
    impatient = ClientConfig(max_connection=1, connection_timeout=0.05, read_timeout=10)
    async with FakeProvider(SILENT) as provider, upstream.open(post(provider.url), patient, {}, "connector"):
        with pytest.raises(Throttled, match=r"all 1 connections of the connector were busy for 0\.05 s") as raised:
            await fetch(upstream, provider.url, impatient)
        assert raised.value.status == 429
        async with upstream.open(post(provider.url), patient, {}, "another connector") as response:
            assert response.status == 200


async def test_a_connection_that_the_provider_has_closed_in_between_is_replaced(upstream: Upstream) -> None:
    async with FakeProvider([*json_response({}), Act.CLOSE]) as provider:
        for _ in range(3):
            await fetch(upstream, provider.url)
            await eventually_async(lambda: provider.open_connections == 0)
    assert provider.connections == 3


async def test_a_reused_connection_that_closes_at_the_request_is_replaced_once(upstream: Upstream) -> None:
    """The provider's idle timeout and our request crossed on the way."""
    async with FakeProvider(
        lambda request: [Act.RESET] if len(provider.requests) == 2 else json_response(1)
    ) as provider:
        await fetch(upstream, provider.url)
        assert await fetch(upstream, provider.url) == (200, b"1")
    assert [request.connection for request in provider.requests] == [1, 1, 2]


async def test_a_new_connection_that_closes_at_the_request_is_an_error(upstream: Upstream) -> None:
    async with FakeProvider([Act.RESET]) as provider:
        with pytest.raises(MLStreamError):
            await fetch(upstream, provider.url)
    assert len(provider.requests) == 1


async def test_bytes_behind_the_end_of_a_response_cost_the_connection(upstream: Upstream) -> None:
    async with FakeProvider([head(content_length="1") + b"1" + head(content_length="1") + b"2"]) as provider:
        assert [await fetch(upstream, provider.url) for _ in range(2)] == [(200, b"1")] * 2
    assert provider.connections == 2


async def test_a_reader_that_pauses_makes_the_provider_wait(upstream: Upstream) -> None:
    size = 32 * 2**20
    sent = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head(content_length=str(size)))
        with contextlib.suppress(ConnectionError):
            while sent < size:
                writer.write(bytes(2**20))
                await writer.drain()
                sent += 2**20
        writer.close()

    server = await asyncio.start_server(pour, "127.0.0.1", 0)
    async with upstream.open(post(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"), CONFIG, {}) as response:
        await comes_to_rest(upstream, lambda: sent)
        assert sent < 16 * 2**20  # what the kernel's buffers hold
        assert len(await response.read()) <= 512 * 1024
        assert len(await read_to_end(response)) > size - 512 * 1024
    server.close()


async def test_random_cancels_under_load_lose_no_permit_and_no_connection(upstream: Upstream) -> None:
    assert isinstance(upstream, HTTPUpstream)
    config = ClientConfig(max_connection=8, connection_timeout=10, read_timeout=10)
    chances = random.Random(7)
    async with FakeProvider(openai_stream(["a", "b", "c"], pause=0.002)) as provider:
        tasks = [asyncio.create_task(fetch(upstream, provider.url, config)) for _ in range(120)]
        for task in tasks[::2]:
            await asyncio.sleep(chances.uniform(0, 0.003))
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(not isinstance(outcome, BaseException) for outcome in outcomes[1::2])
        assert upstream.limiter.acquired("connector") == 0
        await eventually_async(lambda: len(upstream.pool) == provider.open_connections <= 8)
        assert provider.disconnects > 0
