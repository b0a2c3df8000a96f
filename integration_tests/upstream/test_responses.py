"""What a provider may respond, and what the upstream makes of it."""

import asyncio
import gzip
import socket

import pytest
from integration_tests.support.conditions import PATIENCE_SECONDS
from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    Act,
    FakeProvider,
    Gate,
    Script,
    Step,
    chunk,
    chunked_stream,
    head,
    json_response,
    openai_stream,
)
from integration_tests.upstream.calls import CONFIG, RawServer, fetch, post, read_to_end

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.plugin.upstream import ReadTimedOut, Upstream

IMPATIENT = ClientConfig(connection_timeout=30, read_timeout=0.1)


async def test_a_chunk_can_be_read_before_the_next_is_sent(upstream: Upstream) -> None:
    gate = Gate()
    script: Script = [head(transfer_encoding="chunked"), chunk(b"one"), gate, chunk(b"two"), LAST_CHUNK]
    async with FakeProvider(script) as provider, upstream.open(post(provider.url), CONFIG, {}) as response:
        assert await response.read() == b"one"
        gate.open()
        assert await read_to_end(response) == b"two"


async def test_the_request_arrives_as_it_was_rendered(upstream: Upstream) -> None:
    async with FakeProvider(json_response({})) as provider:
        request = post(provider.url + "/v1/a%2Fb?x=1&y=é", b"{}", {"X-Api-Key": "k", "accept-encoding": "gzip"})
        async with upstream.open(request, CONFIG, {}) as response:
            await read_to_end(response)
    (arrived,) = provider.requests
    assert (arrived.method, arrived.path, arrived.body) == ("POST", "/v1/a%2Fb?x=1&y=%C3%A9", b"{}")
    assert arrived.headers == {
        "host": f"127.0.0.1:{provider.port}",
        "content-type": "application/json",
        "x-api-key": "k",
        "accept-encoding": "identity",
        "content-length": "2",
    }


async def test_a_connection_is_used_again_after_a_whole_response(upstream: Upstream) -> None:
    async with FakeProvider(openai_stream(["a", "b"])) as provider:
        bodies = [await fetch(upstream, provider.url) for _ in range(3)]
    assert provider.connections == 1
    assert len(set(bodies)) == 1


@pytest.mark.parametrize(
    ("script", "status", "body"),
    [
        (json_response({"a": 1}), 200, b'{"a": 1}'),
        ([head(content_length="5") + b"he", 0.01, b"llo"], 200, b"hello"),
        ([head() + b"until", 0.01, b" closed", Act.CLOSE], 200, b"until closed"),
        ([head() + b"half", Act.HALF_CLOSE], 200, b"half"),
        ([b"HTTP/1.0 200 OK\r\n\r\nold", Act.CLOSE], 200, b"old"),
        ([b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 0.01, head(content_length="2") + b"[]"], 200, b"[]"),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], 204, b""),
        ([head(302, location="http://127.0.0.1:9/", content_length="0")], 302, b""),
        (
            [head(transfer_encoding="chunked") + b"3;name=value\r\nabc\r\n", 0.01, b"0\r\nDigest: x\r\n", b"\r\n"],
            200,
            b"abc",
        ),
        ([head(transfer_encoding="chunked"), *[bytes([one]) for one in chunk(b"cut") + LAST_CHUNK]], 200, b"cut"),
        ([*[bytes([one]) for one in head(content_length="1") + b"x"]], 200, b"x"),
    ],
    ids=[
        "length", "length in pieces", "until close", "half closed", "HTTP/1.0", "interim", "no content", "redirect",
        "trailers", "chunks byte by byte", "head byte by byte",
    ],
)  # fmt: skip
async def test_every_way_to_end_a_body_is_understood(
    upstream: Upstream, script: Script, status: int, body: bytes
) -> None:
    async with FakeProvider(script) as provider:
        assert await fetch(upstream, provider.url) == (status, body)


async def test_headers_come_in_lower_case_and_joined(upstream: Upstream) -> None:
    raw = b"HTTP/1.1 200 OK\r\nX-One: a\r\nx-one: b\r\nContent-Length: 0\r\n\r\n"
    async with FakeProvider([raw]) as provider, upstream.open(post(provider.url), CONFIG, {}) as response:
        assert response.headers["x-one"] == "a, b"


async def test_a_compressed_stream_is_decoded_as_it_comes(upstream: Upstream) -> None:
    packed = gzip.compress(b"data: 1\n\n" * 1000)
    parts: list[Step] = [chunk(packed[:20]), 0.01, chunk(packed[20:]), LAST_CHUNK]
    async with FakeProvider([head(content_encoding="gzip", transfer_encoding="chunked"), *parts]) as provider:
        assert await fetch(upstream, provider.url) == (200, b"data: 1\n\n" * 1000)


async def test_a_small_body_that_unpacks_to_a_large_one_comes_in_bounded_pieces(upstream: Upstream) -> None:
    packed = gzip.compress(bytes(20_000_000))
    script = [head(content_encoding="gzip", content_length=str(len(packed))) + packed]
    async with FakeProvider(script) as provider, upstream.open(post(provider.url), CONFIG, {}) as response:
        sizes = []
        while data := await response.read():
            sizes.append(len(data))
    assert sum(sizes) == 20_000_000
    assert max(sizes) <= 256 * 1024


@pytest.mark.parametrize(
    ("coding", "body"),
    [("gzip", gzip.compress(b"text")[:-9]), ("gzip", b"plain text"), ("deflate", b"plain"), ("zstd", b"?")],
    ids=["cut", "not gzip", "not deflate", "not known"],
)
async def test_a_body_that_cannot_be_unpacked_is_an_error(upstream: Upstream, coding: str, body: bytes) -> None:
    async with FakeProvider([head(content_encoding=coding, content_length=str(len(body))) + body]) as provider:
        with pytest.raises(UpstreamError, match=rf"content-encoding \[{coding}\] that cannot be decoded"):
            await fetch(upstream, provider.url)


@pytest.mark.parametrize(
    "script",
    [
        [head(transfer_encoding="chunked") + chunk(b"abc"), Act.CLOSE],
        [head(transfer_encoding="chunked") + b"5\r\nab", Act.CLOSE],
        [head(content_length="10") + b"abc", Act.CLOSE],
        [head(content_length="10") + b"abc", Act.RESET],
    ],
    ids=["between chunks", "in a chunk", "short of its length", "reset"],
)
async def test_a_response_that_is_cut_is_an_error(upstream: Upstream, script: Script) -> None:
    async with FakeProvider(script) as provider:
        with pytest.raises(UpstreamError, match="in the middle") as raised:
            await fetch(upstream, provider.url)
    assert raised.value.status == 424
    assert f"127.0.0.1:{provider.port}" in raised.value.reason


async def test_a_reset_is_not_the_end_of_a_body_without_length(upstream: Upstream) -> None:
    has_read = Gate()
    async with (
        FakeProvider([head() + b"abc", has_read, Act.RESET]) as provider,
        upstream.open(post(provider.url), CONFIG, {}, "connector") as response,
    ):
        assert await response.read() == b"abc"
        has_read.open()
        with pytest.raises(UpstreamError, match="in the middle"):
            await response.read()


async def test_a_refused_connection_says_where(upstream: Upstream) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(UpstreamError, match=f"Connection refused: 127.0.0.1:{port}") as raised:
            await fetch(upstream, f"http://127.0.0.1:{port}/v1")
    assert raised.value.status == 424


async def test_an_unknown_host_is_named(upstream: Upstream) -> None:
    with pytest.raises(UpstreamError, match=r"unknown host: no-such-host\.invalid"):
        await fetch(upstream, "http://no-such-host.invalid/")


async def test_a_provider_that_closes_without_a_response_is_an_error(upstream: Upstream) -> None:
    async with FakeProvider([Act.CLOSE]) as provider:
        with pytest.raises(UpstreamError, match="closed the connection before it responded"):
            await fetch(upstream, provider.url)
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    "response",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nBad Header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    ],
    ids=["another protocol", "a header without a colon", "a huge header"],
)
async def test_a_response_that_is_not_http_is_an_error(upstream: Upstream, response: bytes) -> None:
    async with FakeProvider([response, Act.WAIT]) as provider:
        with pytest.raises(UpstreamError, match=r"did not respond with valid HTTP/1\.1"):
            await fetch(upstream, provider.url)


async def test_a_provider_that_sends_no_head_times_out(upstream: Upstream) -> None:
    async with FakeProvider([Act.WAIT]) as provider:
        with pytest.raises(ReadTimedOut, match=r"sent nothing for 0\.1 s"):
            await fetch(upstream, provider.url, IMPATIENT)
        await asyncio.wait_for(provider.disconnected.wait(), PATIENCE_SECONDS)


async def test_a_provider_that_promises_a_head_and_sends_none_times_out(upstream: Upstream) -> None:
    impatient = ClientConfig(connection_timeout=0.2, read_timeout=0.1)
    async with FakeProvider([b"HTTP/1.1 102 Processing\r\n\r\n", Act.WAIT]) as provider:
        with pytest.raises(ReadTimedOut, match=r"sent nothing for 0\.1 s"):
            await fetch(upstream, provider.url, impatient)
        await asyncio.wait_for(provider.disconnected.wait(), PATIENCE_SECONDS)


async def test_a_provider_that_falls_silent_times_out(upstream: Upstream) -> None:
    script: Script = [head(transfer_encoding="chunked") + chunk(b"a"), Act.WAIT]
    async with FakeProvider(script) as provider:
        with pytest.raises(ReadTimedOut):
            await fetch(upstream, provider.url, IMPATIENT)


@pytest.mark.slow
async def test_each_chunk_has_a_timeout_of_its_own(upstream: Upstream) -> None:
    patient = ClientConfig(connection_timeout=30, read_timeout=0.4)
    body = b""
    script = [*chunked_stream([b"a"] * 4, pause=0.12)[:-1], Act.WAIT]
    async with FakeProvider(script) as provider, upstream.open(post(provider.url), patient, {}) as response:
        with pytest.raises(ReadTimedOut):
            while data := await response.read():
                body += data
    # All chunks took longer than the timeout, but none of them did.
    assert body == b"aaaa"


async def test_an_early_refusal_is_read_while_the_request_is_still_being_sent(upstream: Upstream) -> None:
    refusal = head(413, content_length="9", connection="close") + b"too large"
    async with (
        RawServer(refusal) as server,
        upstream.open(post(server.url, b"x" * 8_000_000), CONFIG, {}) as response,
    ):
        assert (response.status, await read_to_end(response)) == (413, b"too large")


@pytest.mark.parametrize("headers", [{"X-A": "b\r\nX-Evil: 1"}, {"X-A\r\nX-Evil": "1"}, {"X A": "1"}, {"X": "a\x00"}])
async def test_no_header_can_be_smuggled_in(upstream: Upstream, headers: dict[str, str]) -> None:
    async with FakeProvider(json_response({})) as provider:
        with pytest.raises(InvalidRequest):
            async with upstream.open(post(provider.url, headers=headers), CONFIG, {}):
                pass
    assert provider.requests == []
