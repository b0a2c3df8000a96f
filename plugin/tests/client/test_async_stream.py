"""The async client over aiohttp, with a server in memory."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import opensearchpy
import pytest
from opensearchpy import AIOHttpConnection, AsyncHttpConnection, AsyncOpenSearch
from opensearchpy.exceptions import ImproperlyConfigured

from opensearch_ml_stream.client import (
    Chunk,
    ConnectionFailed,
    RequestRefused,
    SidecarError,
    StreamTruncated,
    async_predict_stream,
)
from opensearch_ml_stream.connectors.chunks import Chunk as SentChunk
from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.wire_format import NDJSON
from tests.client.in_memory_connections import InMemoryServer, Reply

# opensearch-py's AsyncHttpConnection still uses it.
pytestmark = pytest.mark.filterwarnings("ignore:BasicAuth is deprecated:DeprecationWarning")

TEXT = NDJSON.chunks([SentChunk("a")])
END = NDJSON.ending(Ending("stop", "stop"), {})
PARAMETERS = {"inputs": "hi"}
CONNECTION_KEY = cast(Any, SimpleNamespace(host="sidecar", port=9510, ssl=True))
BOTH = pytest.mark.parametrize("kind", [AIOHttpConnection, AsyncHttpConnection], ids=lambda kind: kind.__name__)


@asynccontextmanager
async def client_of(
    server: InMemoryServer, kind: type, host: str = "http://sidecar:9510", **options: Any
) -> AsyncIterator[AsyncOpenSearch]:
    async with AsyncOpenSearch(host, connection_class=server.connection_class(kind), **options) as client:
        yield client


async def collect(server: InMemoryServer, kind: type, **options: Any) -> list[Chunk]:
    async with client_of(server, kind) as client:
        return [chunk async for chunk in async_predict_stream(client, "m1", PARAMETERS, **options)]


@BOTH
async def test_a_response_is_yielded_chunk_by_chunk_and_then_closed(kind: type) -> None:
    server = InMemoryServer(Reply((TEXT[:20], TEXT[20:], NDJSON.heartbeat, END)))
    assert [(chunk.text, chunk.is_last) for chunk in await collect(server, kind)] == [("a", False), ("", True)]
    assert server.open_responses == 0


@BOTH
async def test_the_request_is_a_post_with_the_clients_login_and_headers(kind: type) -> None:
    server = InMemoryServer(Reply((END,)))
    options: dict[str, Any] = {"http_auth": ("me", "pass"), "headers": {"x-a": "b"}, "timeout": 7}
    async with client_of(server, kind, "http://sidecar:9510/p", **options) as client:
        assert [chunk async for chunk in async_predict_stream(client, "a/b", PARAMETERS, idle_timeout=9)]
    (sent,) = server.sent
    assert (sent.method, sent.url) == ("POST", "http://sidecar:9510/p/_plugins/_ml/models/a%2Fb/_predict/stream")
    assert sent.body == b'{"parameters":{"inputs":"hi"}}'
    assert sent.headers["authorization"] == "Basic bWU6cGFzcw=="
    assert sent.headers["accept"].startswith("application/x-ndjson")
    assert sent.headers["x-a"] == "b"
    assert (sent.connect_timeout, sent.read_timeout) == (7, 9)


async def test_a_signer_signs_the_request_that_is_sent() -> None:
    def sign(method: str, url: str, body: bytes, headers: object) -> dict[str, str]:
        return {"Authorization": f"{method} {url} {len(body)}"}

    server = InMemoryServer(Reply((END,)))
    async with client_of(server, AsyncHttpConnection, http_auth=sign) as client:
        assert [chunk async for chunk in async_predict_stream(client, "m1", PARAMETERS)]
    (sent,) = server.sent
    assert sent.headers["authorization"] == f"POST {sent.url} {len(sent.body)}"


@BOTH
async def test_the_sidecars_url_gets_a_connection_of_its_own_which_is_closed_at_the_end(kind: type) -> None:
    server = InMemoryServer(Reply((END,)))
    async with client_of(server, kind, "http://me:pass@cluster:9200/os") as client:
        chunks = async_predict_stream(client, "m1", PARAMETERS, url="http://sidecar:1/s")
        assert (await anext(chunks)).is_last
        assert server.closed_connections == 0
        assert [chunk async for chunk in chunks] == []
        assert server.closed_connections == 1
    (sent,) = server.sent
    assert sent.url == "http://sidecar:1/s/_plugins/_ml/models/m1/_predict/stream"
    assert sent.headers["authorization"] == "Basic bWU6cGFzcw=="


@BOTH
async def test_the_clients_own_connection_is_kept_for_further_requests(kind: type) -> None:
    server = InMemoryServer(Reply((END,)))
    async with client_of(server, kind) as client:
        for _ in range(2):
            assert [chunk async for chunk in async_predict_stream(client, "m1", PARAMETERS)]
        assert (len(server.sent), server.opened_connections, server.closed_connections) == (2, 1, 0)
    assert server.closed_connections == 1


@BOTH
async def test_an_error_status_is_raised_with_the_reason_and_the_seconds_to_wait(kind: type) -> None:
    reply = Reply((b'{"error":', b'{"type":"t","reason":"no"}}'), 429, "application/json", retry_after="7")
    server = InMemoryServer(reply)
    with pytest.raises(RequestRefused, match=r"^no \(status 429\)$") as raised:
        await collect(server, kind)
    error = raised.value
    assert (error.status, error.type, error.reason, error.retry_after) == (429, "t", "no", 7.0)
    assert (len(server.sent), server.open_responses) == (1, 0)


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (AIOHttpConnection, aiohttp.ServerFingerprintMismatch(b"a", b"b", "h", 1)),
        (AIOHttpConnection, aiohttp.ClientConnectorSSLError(CONNECTION_KEY, ssl.SSLError("x"))),
        (AIOHttpConnection, aiohttp.ConnectionTimeoutError("x")),
        (AsyncHttpConnection, TimeoutError()),
        (AsyncHttpConnection, aiohttp.ServerDisconnectedError("x")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
async def test_a_request_that_gets_no_response_says_from_where_and_why(kind: type, fault: Exception) -> None:
    with pytest.raises(ConnectionFailed, match=r"^No response from http://sidecar:9510: \S+") as raised:
        await collect(InMemoryServer(fault), kind)
    assert (raised.value.__cause__, raised.value.status) == (fault, None)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (aiohttp.SocketTimeoutError("x"), "nothing came for too long, not even a heartbeat"),
        (aiohttp.ClientPayloadError("x"), r"the connection broke \(ClientPayloadError\)"),
        (ConnectionResetError("x"), r"the connection broke \(ConnectionResetError\)"),
    ],
)
async def test_a_stream_that_breaks_off_is_an_error_after_the_chunks_before_it(fault: Exception, reason: str) -> None:
    server = InMemoryServer(Reply((TEXT,), fault=fault))
    async with client_of(server, AIOHttpConnection) as client:
        chunks = async_predict_stream(client, "m1", PARAMETERS)
        assert (await anext(chunks)).text == "a"
        with pytest.raises(StreamTruncated, match=f"The response is incomplete: {reason}") as raised:
            await anext(chunks)
    assert raised.value.type == "stream_truncated_exception"
    assert server.open_responses == 0


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"", "closed the connection before the last chunk"), (NDJSON.error(UpstreamError("overloaded")), "overloaded")],
)
async def test_a_stream_without_a_good_end_is_an_error(data: bytes, reason: str) -> None:
    with pytest.raises(SidecarError, match=reason):
        await collect(InMemoryServer(Reply((TEXT, data))), AIOHttpConnection)


async def test_a_last_chunk_without_a_line_break_is_a_chunk() -> None:
    assert [chunk.is_last for chunk in await collect(InMemoryServer(Reply((END.rstrip(),))), AIOHttpConnection)] == [
        True
    ]


async def test_what_breaks_after_the_last_chunk_is_no_error() -> None:
    server = InMemoryServer(Reply((TEXT, END), fault=aiohttp.ClientPayloadError()))
    assert [chunk.is_last for chunk in await collect(server, AIOHttpConnection)] == [False, True]


async def test_a_generator_that_is_closed_early_closes_its_response() -> None:
    server = InMemoryServer(Reply((TEXT, TEXT, END)))
    async with client_of(server, AIOHttpConnection) as client:
        chunks = async_predict_stream(client, "m1", PARAMETERS)
        await anext(chunks)
        assert server.open_responses == 1
        await chunks.aclose()
        assert server.open_responses == 0


async def test_another_kind_of_connection_is_refused_by_name() -> None:
    class Other(opensearchpy.Connection):
        pass

    client = AsyncOpenSearch("http://sidecar:9510", connection_class=Other)
    with pytest.raises(ImproperlyConfigured, match=r"need AsyncHttpConnection or AIOHttpConnection, not Other"):
        await anext(async_predict_stream(client, "m1", PARAMETERS))
