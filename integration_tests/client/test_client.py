"""The client for opensearch-py users over real sockets: streams over a client that the user already holds."""

import socket
from typing import Any

import pytest
from integration_tests.client.streaming_clients import CONNECTIONS, Streaming
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually, eventually_async
from integration_tests.support.fake_provider import LAST_CHUNK, Act, Gate, Step, chunk, head
from opensearchpy import AIOHttpConnection, AsyncOpenSearch, OpenSearch
from opensearchpy.connection import RequestsHttpConnection, Urllib3HttpConnection

from opensearch_ml_stream.client import (
    Chunk,
    ConnectionFailed,
    RequestRefused,
    StreamTruncated,
    async_predict_stream,
    predict_stream,
)
from opensearch_ml_stream.connectors.chunks import Chunk as SentChunk
from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.wire_format import NDJSON

# opensearch-py's AsyncHttpConnection still uses it.
pytestmark = pytest.mark.filterwarnings("ignore:BasicAuth is deprecated:DeprecationWarning")

PARAMETERS = {"inputs": "hi"}
GOOD_END = NDJSON.ending(Ending(), {})
HEAD = head(content_type="application/x-ndjson", transfer_encoding="chunked")


def text(value: str) -> bytes:
    return chunk(NDJSON.chunks([SentChunk(value)]))


@pytest.fixture(params=CONNECTIONS, ids=lambda connection_class: connection_class.__name__)
def streaming(request: pytest.FixtureRequest) -> Streaming:
    return Streaming(request.param)


async def test_chunks_arrive_as_they_are_sent(streaming: Streaming) -> None:
    gates = [Gate() for _ in range(3)]
    script: list[Step] = [HEAD]
    for value, gate in zip("abc", gates, strict=True):
        script += [text(value), gate]  # each is sent once the one before has arrived
    closed = iter(gates)

    def open_next(chunk: Chunk) -> None:
        if not chunk.is_last:
            next(closed).open()

    with background_provider([*script, chunk(GOOD_END), LAST_CHUNK]) as provider:
        received = await streaming.collect(provider.url, open_next)
    assert [one.text for one in received] == ["a", "b", "c", ""]


# AIOHttpConnection takes no signer.
@pytest.mark.parametrize("streaming", [kind for kind in CONNECTIONS if kind is not AIOHttpConnection], indirect=True)
async def test_a_signer_signs_the_very_request_that_is_sent(streaming: Streaming) -> None:
    seen = []

    def sign(method: str, url: str, body: bytes, headers: object = None) -> dict[str, str]:
        seen.append((method, url, body))
        return {"Authorization": "signed"}

    def sign_prepared(request: Any) -> Any:
        request.headers["Authorization"] = "signed"
        seen.append((request.method, request.url, request.body))
        return request

    by_requests = streaming.connection_class is RequestsHttpConnection
    with background_provider([HEAD, chunk(GOOD_END), LAST_CHUNK]) as provider:
        await streaming.collect(provider.url, http_auth=sign_prepared if by_requests else sign)
    (request,) = provider.requests
    assert request.headers["authorization"] == "signed"
    assert seen == [("POST", provider.url + request.path, request.body)]


async def test_a_redirect_is_an_error_since_the_prompt_is_for_the_sidecar_alone(streaming: Streaming) -> None:
    with (
        background_provider([head(307, location="http://127.0.0.1:1/", content_length="0")]) as provider,
        pytest.raises(RequestRefused) as error,
    ):
        await streaming.collect(provider.url)
    assert error.value.status == 307


async def test_a_server_that_cannot_be_reached_is_an_error_that_names_it(streaming: Streaming) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(ConnectionFailed, match=f"No response from {address}: "):
            await streaming.collect(address)


async def test_a_server_that_never_responds_is_an_error(streaming: Streaming) -> None:
    with background_provider([Act.WAIT]) as provider, pytest.raises(ConnectionFailed):
        await streaming.collect(provider.url, idle_timeout=0.1)
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("ending", "idle_timeout"),
    [
        pytest.param([LAST_CHUNK], 20, id="ended"),
        pytest.param([Act.CLOSE], 20, id="closed"),
        pytest.param([Act.RESET], 20, id="reset"),
        pytest.param([b"5\r\n{", Act.CLOSE], 20, id="cut in a chunk"),
        pytest.param([chunk(b'{"inference'), LAST_CHUNK], 20, id="cut in an object"),
        pytest.param([Act.WAIT], 1, id="silent", marks=pytest.mark.slow),
    ],
)
async def test_a_response_without_its_last_chunk_is_an_error(
    streaming: Streaming, ending: list[Step], idle_timeout: float
) -> None:
    gate = Gate()
    received: list[Chunk] = []

    def note(chunk: Chunk) -> None:
        received.append(chunk)
        gate.open()

    with background_provider([HEAD, text("a"), gate, *ending]) as provider, pytest.raises(StreamTruncated) as error:
        await streaming.collect(provider.url, note, idle_timeout=idle_timeout)
    assert [one.text for one in received] == ["a"]
    assert error.value.type == "stream_truncated_exception"


async def test_ending_the_loop_early_closes_the_connection(streaming: Streaming) -> None:
    with background_provider([HEAD, text("a"), Act.WAIT]) as provider:
        await streaming.collect(provider.url, lambda _: True)
        await eventually_async(provider.disconnected.is_set)


async def test_heartbeats_keep_a_stream_open_beyond_the_clients_own_timeout(streaming: Streaming) -> None:
    beats = [step for _ in range(3) for step in (0.1, chunk(NDJSON.heartbeat))]
    with background_provider([HEAD, *beats, chunk(GOOD_END), LAST_CHUNK]) as provider:
        received = await streaming.collect(provider.url, timeout=0.05, idle_timeout=20)
    assert [one.is_last for one in received] == [True]


def test_a_generator_that_is_kept_closes_the_connection_when_it_is_closed() -> None:
    with background_provider([HEAD, text("a"), Act.WAIT]) as provider:
        chunks = predict_stream(OpenSearch(provider.url), "m1", PARAMETERS)
        next(chunks)
        assert not provider.disconnected.is_set()
        chunks.close()
        eventually(provider.disconnected.is_set)


async def test_an_async_generator_that_is_kept_closes_the_connection_when_it_is_closed() -> None:
    with background_provider([HEAD, text("a"), Act.WAIT]) as provider:
        async with AsyncOpenSearch(provider.url) as client:
            chunks = async_predict_stream(client, "m1", PARAMETERS)
            await anext(chunks)
            await chunks.aclose()
            await eventually_async(provider.disconnected.is_set)


@pytest.mark.parametrize("connection_class", [Urllib3HttpConnection, RequestsHttpConnection])
def test_a_connection_whose_response_was_read_to_its_end_is_used_again(connection_class: Any) -> None:
    with background_provider([HEAD, text("a"), chunk(GOOD_END), LAST_CHUNK]) as provider:
        client = OpenSearch(provider.url, connection_class=connection_class)
        for _ in range(3):
            list(predict_stream(client, "m1", PARAMETERS))
        client.close()
    assert (len(provider.requests), provider.connections) == (3, 1)
