"""Both clients over opensearch-py's four kinds of connection, with a server in memory."""

import json
import ssl
from contextlib import aclosing
from inspect import isawaitable
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import opensearchpy
import pytest
import requests
import urllib3
from opensearchpy import AIOHttpConnection, AsyncHttpConnection, AsyncOpenSearch, OpenSearch
from opensearchpy.connection import RequestsHttpConnection, Urllib3HttpConnection
from opensearchpy.exceptions import ImproperlyConfigured

from opensearch_ml_stream.client import (
    AsyncStreamingMLClient,
    ConnectionFailed,
    RequestRefused,
    SidecarError,
    StreamingMLClient,
    StreamTruncated,
    async_predict_stream,
    predict_stream,
)
from opensearch_ml_stream.connectors.chunks import Chunk as SentChunk
from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.wire_format import NDJSON
from tests.client.in_memory_connections import ASYNC, BLOCKING, PARAMETERS, InMemoryServer, Reply, Sent, stream

# opensearch-py's AsyncHttpConnection still uses it.
pytestmark = pytest.mark.filterwarnings("ignore:BasicAuth is deprecated:DeprecationWarning")

TEXT = NDJSON.chunks([SentChunk("a")])
END = NDJSON.ending(Ending("stop", "stop"), {})
KEY = cast(Any, SimpleNamespace(host="sidecar", port=9510, ssl=True))  # of aiohttp's connection
KINDS = pytest.mark.parametrize("kind", [*BLOCKING, *ASYNC], ids=lambda kind: kind.__name__)


@KINDS
@pytest.mark.parametrize("chunked", [True, False])
async def test_a_response_is_yielded_chunk_by_chunk_and_then_closed(kind: type, chunked: bool) -> None:
    server = InMemoryServer(Reply((TEXT[:20], TEXT[20:], NDJSON.heartbeat, END), chunked=chunked))
    assert [(chunk.text, chunk.is_last) async for chunk in stream(server, kind)] == [("a", False), ("", True)]
    assert server.open_responses == 0


@KINDS
async def test_the_request_is_a_post_with_the_clients_login_and_headers(kind: type) -> None:
    server = InMemoryServer(Reply((END,)))
    options: dict[str, Any] = {"http_auth": ("me", "pass"), "headers": {"x-a": "b"}, "timeout": 7}
    assert [one async for one in stream(server, kind, "http://sidecar:9510/p", {"idle_timeout": 9}, **options)]
    (sent,) = server.sent
    assert (sent.method, sent.url) == ("POST", "http://sidecar:9510/p/_plugins/_ml/models/m1/_predict/stream")
    assert sent.body == b'{"parameters":{"inputs":"hi"}}'
    assert sent.headers["authorization"] == "Basic bWU6cGFzcw=="
    assert sent.headers["accept"].startswith("application/x-ndjson")
    assert sent.headers["x-a"] == "b"
    assert (sent.connect_timeout, sent.read_timeout) == (7, 9)


def test_nothing_is_sent_before_the_first_chunk_is_asked_for() -> None:
    server = InMemoryServer(Reply((END,)))
    client = OpenSearch("http://sidecar:9510", connection_class=server.connection_class(Urllib3HttpConnection))
    chunks = predict_stream(client, "m1", PARAMETERS)
    assert server.sent == []
    assert next(chunks).is_last


@KINDS
async def test_the_sidecars_url_gets_a_connection_of_its_own_which_is_closed_at_the_end(kind: type) -> None:
    server = InMemoryServer(Reply((END,)))
    async with aclosing(
        stream(server, kind, "http://me:pass@cluster:9200/os", {"url": "http://sidecar:1/s"})
    ) as chunks:
        assert (await anext(chunks)).is_last
        assert server.closed_connections == 0
        assert [chunk async for chunk in chunks] == []
    assert server.closed_connections > 0
    (sent,) = server.sent
    assert sent.url == "http://sidecar:1/s/_plugins/_ml/models/m1/_predict/stream"
    assert sent.headers["authorization"] == "Basic bWU6cGFzcw=="


async def test_the_clients_own_connection_is_kept_for_further_requests() -> None:
    server = InMemoryServer(Reply((END,)))
    client = OpenSearch("http://sidecar:9510", connection_class=server.connection_class(Urllib3HttpConnection))
    for _ in range(2):
        assert list(predict_stream(client, "m1", PARAMETERS))
    assert (len(server.sent), server.opened_connections, server.closed_connections) == (2, 1, 0)
    client.transport.get_connection().pool = None  # as opensearch-py leaves a connection that was closed
    assert list(predict_stream(client, "m1", PARAMETERS))
    assert server.opened_connections == 2
    over = server.connection_class(AIOHttpConnection)
    async with AsyncOpenSearch("http://sidecar:9510", connection_class=over) as running:
        for _ in range(2):
            assert [chunk async for chunk in async_predict_stream(running, "m1", PARAMETERS)]
    assert (server.opened_connections, server.closed_connections) == (3, 1)


@KINDS
async def test_an_error_status_is_raised_with_the_reason_and_the_seconds_to_wait(kind: type) -> None:
    reply = Reply((b'{"error":', b'{"type":"t","reason":"no"}}'), 429, "application/json", retry_after="7")
    server = InMemoryServer(reply)
    with pytest.raises(RequestRefused, match=r"^no \(status 429\)$") as raised:
        await anext(stream(server, kind))
    error = raised.value
    assert (error.status, error.type, error.reason, error.retry_after) == (429, "t", "no", 7.0)
    assert (len(server.sent), server.open_responses) == (1, 0)


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (Urllib3HttpConnection, urllib3.exceptions.SSLError("x")),
        (Urllib3HttpConnection, urllib3.exceptions.ReadTimeoutError(None, "", "x")),  # type: ignore[arg-type]
        (Urllib3HttpConnection, urllib3.exceptions.ProtocolError("x")),
        (RequestsHttpConnection, requests.exceptions.SSLError("x")),
        (RequestsHttpConnection, requests.exceptions.ReadTimeout("x")),
        (RequestsHttpConnection, requests.ConnectionError("x")),
        (AIOHttpConnection, aiohttp.ServerFingerprintMismatch(b"a", b"b", "h", 1)),
        (AIOHttpConnection, aiohttp.ClientConnectorSSLError(KEY, ssl.SSLError("x"))),
        (AIOHttpConnection, aiohttp.ConnectionTimeoutError("x")),
        (AsyncHttpConnection, TimeoutError()),
        (AsyncHttpConnection, aiohttp.ServerDisconnectedError("x")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
async def test_a_request_that_gets_no_response_says_from_where_and_why(kind: type, fault: Exception) -> None:
    with pytest.raises(ConnectionFailed, match=r"^No response from http://sidecar:9510: \S+") as raised:
        await anext(stream(InMemoryServer(fault), kind))
    assert (raised.value.__cause__, raised.value.status) == (fault, None)


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize(
    ("kind", "fault", "reason"),
    [
        (Urllib3HttpConnection, TimeoutError("timed out"), "nothing came for too long, not even a heartbeat"),
        (Urllib3HttpConnection, ConnectionResetError("x"), r"the connection broke \(ProtocolError\)"),
        (RequestsHttpConnection, TimeoutError("timed out"), "nothing came for too long, not even a heartbeat"),
        (RequestsHttpConnection, ConnectionResetError("x"), r"the connection broke \(ProtocolError\)"),
        (AIOHttpConnection, aiohttp.SocketTimeoutError("x"), "nothing came for too long, not even a heartbeat"),
        (AIOHttpConnection, aiohttp.ClientPayloadError("x"), r"the connection broke \(ClientPayloadError\)"),
        (AsyncHttpConnection, ConnectionResetError("x"), r"the connection broke \(ConnectionResetError\)"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
async def test_a_stream_that_breaks_off_is_an_error_unless_its_last_chunk_has_come(
    kind: type, chunked: bool, fault: Exception, reason: str
) -> None:
    server = InMemoryServer(Reply((TEXT,), chunked=chunked, fault=fault))
    chunks = stream(server, kind)
    assert (await anext(chunks)).text == "a"
    with pytest.raises(StreamTruncated, match=f"The response is incomplete: {reason}") as raised:
        await anext(chunks)
    assert raised.value.type == "stream_truncated_exception"
    assert server.open_responses == 0
    server.reply = Reply((TEXT, END), chunked=chunked, fault=fault)
    assert [chunk.is_last async for chunk in stream(server, kind)] == [False, True]


@KINDS
async def test_a_last_chunk_needs_no_line_break_and_a_stream_needs_a_last_chunk(kind: type) -> None:
    assert [chunk.is_last async for chunk in stream(InMemoryServer(Reply((END.rstrip(),))), kind)] == [True]
    with pytest.raises(StreamTruncated, match="closed the connection before the last chunk"):
        assert [chunk async for chunk in stream(InMemoryServer(Reply((TEXT,))), kind)]


@KINDS
async def test_a_stream_that_is_left_early_closes_its_response(kind: type) -> None:
    server = InMemoryServer(Reply((TEXT * 4000, END)))
    async with aclosing(stream(server, kind)) as chunks:
        await anext(chunks)
        assert server.open_responses == 1
    assert server.open_responses == 0


async def test_another_kind_of_connection_is_refused_by_name() -> None:
    class Other(opensearchpy.Connection):
        pass

    client = OpenSearch("http://sidecar:9510", connection_class=Other)
    with pytest.raises(ImproperlyConfigured, match=r"need Urllib3HttpConnection or RequestsHttpConnection, not Other"):
        next(predict_stream(client, "m1", PARAMETERS))
    running = AsyncOpenSearch("http://sidecar:9510", connection_class=Other)
    with pytest.raises(ImproperlyConfigured, match=r"need AsyncHttpConnection or AIOHttpConnection, not Other"):
        await anext(async_predict_stream(running, "m1", PARAMETERS))


BASE = "http://sidecar:9510/_plugins/_ml"
BOTH = pytest.mark.parametrize("kind", [StreamingMLClient, AsyncStreamingMLClient])
Kind = type[StreamingMLClient] | type[AsyncStreamingMLClient]


class Sidecar(InMemoryServer):
    """Responds in JSON, or bytes as they are, by method and path; 400 to what it has no response for."""

    def __init__(self, responses: dict[tuple[str, str], Any]) -> None:
        super().__init__(Reply((b'{"error": {"type": "t", "reason": "no"}}',), 400, "application/json"))
        self.responses = responses

    def respond(self, request: Sent) -> Reply:
        refusal = super().respond(request)
        body = self.responses.get((request.method, request.url.removeprefix(BASE)))
        return refusal if body is None else Reply((body if isinstance(body, bytes) else json.dumps(body).encode(),))

    def client(self, kind: Kind, host: str = "http://sidecar:9510", **options: Any) -> Any:
        if kind is StreamingMLClient:
            return kind(OpenSearch(host, connection_class=self.connection_class(Urllib3HttpConnection)), **options)
        over = AsyncOpenSearch(host, connection_class=self.connection_class(AIOHttpConnection))
        return cast(type[AsyncStreamingMLClient], kind)(over, **options)


async def result_of(value: Any) -> Any:
    return await value if isawaitable(value) else value


@BOTH
async def test_a_model_is_registered_with_the_connector_that_was_made_for_it(kind: Kind) -> None:
    sidecar = Sidecar(
        {("POST", "/connectors/_create"): {"connector_id": "c1"}, ("POST", "/models/_register"): {"model_id": "m1"}}
    )
    assert await result_of(sidecar.client(kind).create_model("openai-chat", credential={"openAI_key": "k"})) == "m1"
    connector, model = (json.loads(sent.body) for sent in sidecar.sent)
    assert (connector["credential"], model["connector_id"]) == ({"openAI_key": "k"}, "c1")


@BOTH
@pytest.mark.parametrize("deleted", [{("DELETE", "/connectors/c%2F1"): {}}, {}], ids=["deleted", "not deleted"])
async def test_the_connector_of_a_model_that_cannot_be_registered_is_deleted(
    kind: Kind, deleted: dict[tuple[str, str], Any]
) -> None:
    sidecar = Sidecar({("POST", "/connectors/_create"): {"connector_id": "c/1"}, **deleted})
    with pytest.raises(RequestRefused, match="no") as raised:
        await result_of(sidecar.client(kind).create_model("openai-chat", credential={"openAI_key": "k"}))
    assert raised.value.status == 400
    assert [(sent.method, sent.url.removeprefix(BASE)) for sent in sidecar.sent] == [
        ("POST", "/connectors/_create"),
        ("POST", "/models/_register"),
        ("DELETE", "/connectors/c%2F1"),
    ]


@BOTH
async def test_a_whole_prediction_is_the_servers_json(kind: Kind) -> None:
    sidecar = Sidecar({("POST", "/models/m1/_predict"): {"inference_results": []}})
    assert await result_of(sidecar.client(kind).predict("m1", PARAMETERS)) == {"inference_results": []}
    assert sidecar.sent[0].headers["accept"] == "application/json"
    sidecar.responses["POST", "/models/m1/_predict"] = b"<html>"
    with pytest.raises(SidecarError, match="is it the sidecar"):
        await result_of(sidecar.client(kind).predict("m1", {}))
    assert sidecar.open_responses == 0


@BOTH
async def test_every_request_goes_to_the_url_with_the_key_and_the_idle_timeout_if_they_are_given(kind: Kind) -> None:
    vectors = {"inference_results": [{"output": [{"data": [1.0]}]}]}
    responses = {"/models/m1/_predict/stream": END, "/models/m1/_predict": {}, "/_predict/text_embedding/m1": vectors}
    sidecar = Sidecar({("POST", path): response for path, response in responses.items()})
    client = sidecar.client(kind, "http://cluster:9200", url="http://sidecar:9510", idle_timeout=9, api_key="k1")
    assert await result_of(client.predict("m1", {})) == {}
    assert await result_of(client.embed("m1", ["a"])) == [[1.0]]
    chunks = client.predict_stream("m1", {})
    assert list(chunks) if kind is StreamingMLClient else [chunk async for chunk in chunks]
    with pytest.raises(RequestRefused):
        await result_of(client.create_connector("openai-chat", credential={"openAI_key": "k"}))
    seen = [(sent.url.startswith(BASE), sent.headers["authorization"], sent.read_timeout) for sent in sidecar.sent]
    assert seen == [(True, "Bearer k1", 9)] * 4
