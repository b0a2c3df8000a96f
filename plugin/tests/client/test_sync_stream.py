"""The blocking client over urllib3 and requests, with a server in memory."""

from typing import Any

import opensearchpy
import pytest
import requests
import urllib3
from opensearchpy import OpenSearch
from opensearchpy.connection import RequestsHttpConnection, Urllib3HttpConnection
from opensearchpy.exceptions import ImproperlyConfigured

from opensearch_ml_stream.client import (
    Chunk,
    ConnectionFailed,
    RequestRefused,
    SidecarError,
    StreamTruncated,
    predict_stream,
)
from opensearch_ml_stream.connectors.chunks import Chunk as SentChunk
from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.wire_format import NDJSON
from tests.client.in_memory_connections import InMemoryServer, Reply

TEXT = NDJSON.chunks([SentChunk("a")])
END = NDJSON.ending(Ending("stop", "stop"), {})
PARAMETERS = {"inputs": "hi"}
KINDS = [Urllib3HttpConnection, RequestsHttpConnection]
BOTH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def client_of(server: InMemoryServer, kind: type, host: str = "http://sidecar:9510", **options: Any) -> OpenSearch:
    return OpenSearch(host, connection_class=server.connection_class(kind), **options)


def collect(server: InMemoryServer, kind: type, **options: Any) -> list[Chunk]:
    return list(predict_stream(client_of(server, kind), "m1", PARAMETERS, **options))


@BOTH
@pytest.mark.parametrize("chunked", [True, False])
def test_a_response_is_yielded_chunk_by_chunk_and_then_closed(kind: type, chunked: bool) -> None:
    server = InMemoryServer(Reply((TEXT[:20], TEXT[20:], NDJSON.heartbeat, END), chunked=chunked))
    assert [(chunk.text, chunk.is_last) for chunk in collect(server, kind)] == [("a", False), ("", True)]
    assert server.open_responses == 0


@BOTH
def test_the_request_is_a_post_with_the_clients_login_and_headers(kind: type) -> None:
    server = InMemoryServer(Reply((END,)))
    client = client_of(server, kind, "http://sidecar:9510/p", http_auth=("me", "pass"), headers={"x-a": "b"}, timeout=7)
    list(predict_stream(client, "m1", PARAMETERS, idle_timeout=9))
    (sent,) = server.sent
    assert (sent.method, sent.url) == ("POST", "http://sidecar:9510/p/_plugins/_ml/models/m1/_predict/stream")
    assert sent.body == b'{"parameters":{"inputs":"hi"}}'
    assert sent.headers["authorization"] == "Basic bWU6cGFzcw=="
    assert sent.headers["accept"].startswith("application/x-ndjson")
    assert sent.headers["x-a"] == "b"
    assert (sent.connect_timeout, sent.read_timeout) == (7, 9)


@BOTH
def test_nothing_is_sent_before_the_first_chunk_is_asked_for(kind: type) -> None:
    server = InMemoryServer(Reply((END,)))
    chunks = predict_stream(client_of(server, kind), "m1", PARAMETERS)
    assert server.sent == []
    assert next(chunks).is_last
    assert len(server.sent) == 1


@BOTH
def test_the_clients_own_connection_is_kept_for_further_requests(kind: type) -> None:
    server = InMemoryServer(Reply((END,)))
    client = client_of(server, kind)
    for _ in range(2):
        assert list(predict_stream(client, "m1", PARAMETERS))
    assert (len(server.sent), server.opened_connections, server.closed_connections) == (2, 1, 0)


def test_a_connection_that_was_closed_is_opened_again() -> None:
    server = InMemoryServer(Reply((END,)))
    client = client_of(server, Urllib3HttpConnection)
    client.transport.get_connection().pool = None  # as opensearch-py leaves it
    assert list(predict_stream(client, "m1", PARAMETERS))
    assert server.opened_connections == 2


def test_a_signer_signs_the_request_that_is_sent() -> None:
    def sign(method: str, url: str, body: bytes) -> dict[str, str]:
        return {"Authorization": f"{method} {url} {len(body)}"}

    server = InMemoryServer(Reply((END,)))
    list(predict_stream(client_of(server, Urllib3HttpConnection, http_auth=sign), "m1", PARAMETERS))
    (sent,) = server.sent
    assert sent.headers["authorization"] == f"POST {sent.url} {len(sent.body)}"


@BOTH
def test_the_sidecars_url_gets_a_connection_of_its_own_which_is_closed_at_the_end(kind: type) -> None:
    server = InMemoryServer(Reply((END,)))
    client = client_of(server, kind, "http://me:pass@cluster:9200/os")
    chunks = predict_stream(client, "m1", PARAMETERS, url="http://sidecar:1/s")
    assert next(chunks).is_last
    assert server.closed_connections == 0
    assert list(chunks) == []
    assert server.closed_connections > 0
    (sent,) = server.sent
    assert sent.url == "http://sidecar:1/s/_plugins/_ml/models/m1/_predict/stream"
    assert sent.headers["authorization"] == "Basic bWU6cGFzcw=="


@BOTH
def test_an_error_status_is_raised_with_the_reason_and_the_seconds_to_wait(kind: type) -> None:
    reply = Reply((b'{"error":', b'{"type":"t","reason":"no"}}'), 429, "application/json", retry_after="7")
    server = InMemoryServer(reply)
    with pytest.raises(RequestRefused, match=r"^no \(status 429\)$") as raised:
        collect(server, kind)
    error = raised.value
    assert (error.status, error.type, error.reason, error.retry_after) == (429, "t", "no", 7.0)
    assert (len(server.sent), server.open_responses) == (1, 0)


@BOTH
def test_a_redirect_is_an_error(kind: type) -> None:
    with pytest.raises(RequestRefused) as raised:
        collect(InMemoryServer(Reply(status=307)), kind)
    assert raised.value.status == 307


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (Urllib3HttpConnection, urllib3.exceptions.SSLError("x")),
        (Urllib3HttpConnection, urllib3.exceptions.ReadTimeoutError(None, "", "x")),  # type: ignore[arg-type]
        (Urllib3HttpConnection, urllib3.exceptions.ProtocolError("x")),
        (RequestsHttpConnection, requests.exceptions.SSLError("x")),
        (RequestsHttpConnection, requests.exceptions.ReadTimeout("x")),
        (RequestsHttpConnection, requests.ConnectionError("x")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_request_that_gets_no_response_says_from_where_and_why(kind: type, fault: Exception) -> None:
    with pytest.raises(ConnectionFailed, match=r"^No response from http://sidecar:9510: \S+") as raised:
        collect(InMemoryServer(fault), kind)
    assert (raised.value.__cause__, raised.value.status) == (fault, None)


@BOTH
@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (TimeoutError("timed out"), "nothing came for too long, not even a heartbeat"),
        (ConnectionResetError("reset"), r"the connection broke \(ProtocolError\)"),
    ],
)
def test_a_stream_that_breaks_off_is_an_error_after_the_chunks_before_it(
    kind: type, chunked: bool, fault: Exception, reason: str
) -> None:
    server = InMemoryServer(Reply((TEXT,), chunked=chunked, fault=fault))
    chunks = predict_stream(client_of(server, kind), "m1", PARAMETERS)
    assert next(chunks).text == "a"
    with pytest.raises(StreamTruncated, match=f"The response is incomplete: {reason}") as raised:
        next(chunks)
    assert raised.value.type == "stream_truncated_exception"
    assert server.open_responses == 0


@BOTH
def test_a_stream_that_ends_before_its_last_chunk_is_an_error(kind: type) -> None:
    with pytest.raises(StreamTruncated, match="closed the connection before the last chunk"):
        collect(InMemoryServer(Reply((TEXT,))), kind)


@BOTH
def test_an_error_object_in_the_stream_is_raised(kind: type) -> None:
    with pytest.raises(SidecarError, match="overloaded"):
        collect(InMemoryServer(Reply((TEXT, NDJSON.error(UpstreamError("overloaded"))))), kind)


@BOTH
@pytest.mark.parametrize("chunked", [True, False])
def test_what_breaks_after_the_last_chunk_is_no_error(kind: type, chunked: bool) -> None:
    server = InMemoryServer(Reply((TEXT, END), chunked=chunked, fault=ConnectionResetError()))
    assert [chunk.is_last for chunk in collect(server, kind)] == [False, True]


@BOTH
@pytest.mark.parametrize("chunked", [True, False])
def test_a_generator_that_is_closed_early_closes_its_response(kind: type, chunked: bool) -> None:
    server = InMemoryServer(Reply((TEXT * 4000, END), chunked=chunked))
    chunks = predict_stream(client_of(server, kind), "m1", PARAMETERS)
    next(chunks)
    assert server.open_responses == 1
    chunks.close()
    assert server.open_responses == 0


def test_another_kind_of_connection_is_refused_by_name() -> None:
    class Other(opensearchpy.Connection):
        pass

    client = OpenSearch("http://sidecar:9510", connection_class=Other)
    with pytest.raises(ImproperlyConfigured, match=r"need Urllib3HttpConnection or RequestsHttpConnection, not Other"):
        next(predict_stream(client, "m1", PARAMETERS))
