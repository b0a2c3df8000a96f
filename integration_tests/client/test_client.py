"""The client for opensearch-py users over real sockets: streams over a client that the user already holds."""

import socket
from typing import Any

import pytest
from integration_tests.client.streaming_clients import CONNECTIONS, Streaming
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually, eventually_async
from integration_tests.support.fake_provider import LAST_CHUNK, Act, Gate, Step, chunk, head, json_response
from opensearchpy import AIOHttpConnection, AsyncOpenSearch, OpenSearch
from opensearchpy.connection import RequestsHttpConnection, Urllib3HttpConnection

from opensearch_ml_stream.client import (
    Chunk,
    ConnectionFailed,
    ProviderFailed,
    RequestRefused,
    SidecarError,
    StreamTruncated,
    async_predict_stream,
    predict_stream,
)
from opensearch_ml_stream.connectors.chunks import Chunk as SentChunk
from opensearch_ml_stream.connectors.chunks import Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.wire_format import NDJSON, SSE, WireFormat

# opensearch-py's AsyncHttpConnection still uses it.
pytestmark = pytest.mark.filterwarnings("ignore:BasicAuth is deprecated:DeprecationWarning")

PARAMETERS = {"inputs": "hi"}
GOOD_END = NDJSON.ending(Ending("stop", "stop", Usage(2, 3), "gpt"), {})
HEAD = head(content_type="application/x-ndjson", transfer_encoding="chunked")
NOT_FOUND = {
    "error": {
        "root_cause": [{"type": "status_exception", "reason": "Failed to find model"}],
        "type": "status_exception",
        "reason": "Failed to find model",
    },
    "status": 404,
}


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


async def test_the_request_is_the_one_that_the_sidecar_serves(streaming: Streaming) -> None:
    with background_provider([HEAD, chunk(GOOD_END), LAST_CHUNK]) as provider:
        await streaming.collect(provider.url, http_auth=("me", "pass"), headers={"X-Tenant": "t"})
    (request,) = provider.requests
    assert (request.method, request.path) == ("POST", "/_plugins/_ml/models/m1/_predict/stream")
    assert request.json() == {"parameters": PARAMETERS}
    assert request.headers["accept"].startswith("application/x-ndjson")
    assert request.headers["content-type"] == "application/json"
    assert request.headers["authorization"] == "Basic bWU6cGFzcw=="
    assert request.headers["x-tenant"] == "t"


async def test_the_sidecars_own_url_is_called_with_the_clients_login_and_headers(streaming: Streaming) -> None:
    with background_provider([HEAD, chunk(GOOD_END), LAST_CHUNK]) as provider:
        host, url = "http://me:pass@localhost:1/prefix", f"{provider.url}/sidecar"
        await streaming.collect(host, url=url, headers={"X-Tenant": "t"})
    (request,) = provider.requests
    assert request.path == "/sidecar/_plugins/_ml/models/m1/_predict/stream"
    assert request.headers["authorization"] == "Basic bWU6cGFzcw=="
    assert request.headers["x-tenant"] == "t"


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


async def test_the_last_chunk_has_the_finish_reason_and_the_usage(streaming: Streaming) -> None:
    call = SentChunk("", "hm", (ToolCall(0, "c1", "f", "{}"),))
    with background_provider([HEAD, chunk(NDJSON.chunks([call])), chunk(GOOD_END), LAST_CHUNK]) as provider:
        first, last = await streaming.collect(provider.url)
    assert (first.reasoning, first.is_last, first.finish_reason) == ("hm", False, None)
    assert first.tool_calls == ({"index": 0, "id": "c1", "name": "f", "arguments": "{}"},)
    assert (last.is_last, last.finish_reason, last.model) == (True, "stop", "gpt")
    assert last.usage == {"input_tokens": 2, "output_tokens": 3, "total_tokens": 5}
    assert last.raw["inference_results"][0]["status_code"] == 200


async def test_server_sent_events_are_read_as_well_since_ml_commons_itself_sends_them(streaming: Streaming) -> None:
    data = SSE.chunks([SentChunk("a")]) + SSE.heartbeat + SSE.ending(Ending(), {})
    with background_provider([head(content_type="text/event-stream"), data, Act.CLOSE]) as provider:
        received = await streaming.collect(provider.url)
    assert [one.text for one in received] == ["a", ""]


@pytest.mark.parametrize("status", [400, 404, 429, 503])
async def test_an_error_before_the_stream_has_the_servers_reason_and_nothing_is_sent_twice(
    streaming: Streaming, status: int
) -> None:
    refusal = json_response({**NOT_FOUND, "status": status}, status, retry_after="7")
    with background_provider(refusal) as provider, pytest.raises(RequestRefused) as error:
        await streaming.collect(provider.url)
    assert (error.value.status, error.value.type) == (status, "status_exception")
    assert (error.value.reason, error.value.retry_after) == ("Failed to find model", 7.0)
    assert len(provider.requests) == 1


async def test_the_error_of_a_response_that_is_not_json_is_its_text(streaming: Streaming) -> None:
    script = [head(502, content_type="text/html", content_length="6") + b"<html>"]
    with background_provider(script) as provider, pytest.raises(RequestRefused) as error:
        await streaming.collect(provider.url)
    assert (error.value.status, error.value.reason) == (502, "<html>")


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


@pytest.mark.parametrize("wire", [NDJSON, SSE], ids=["ndjson", "sse"])
async def test_an_error_inside_the_stream_comes_after_the_chunks_before_it(
    streaming: Streaming, wire: WireFormat
) -> None:
    data = wire.error(UpstreamError("overloaded", type="remote_exception", provider_status=529))
    received: list[Chunk] = []
    with (
        background_provider([HEAD, text("a"), chunk(data), LAST_CHUNK]) as provider,
        pytest.raises(ProviderFailed) as error,
    ):
        await streaming.collect(provider.url, received.append)
    assert [one.text for one in received] == ["a"]
    assert (error.value.status, error.value.type, error.value.reason) == (424, "remote_exception", "overloaded")
    assert error.value.provider_status == 529


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


async def test_a_fault_after_the_last_chunk_is_no_error(streaming: Streaming) -> None:
    gate = Gate()

    def break_off(chunk: Chunk) -> None:
        if chunk.is_last:
            gate.open()

    with background_provider([HEAD, text("a"), chunk(GOOD_END), gate, Act.RESET]) as provider:
        received = await streaming.collect(provider.url, break_off)
    assert [one.is_last for one in received] == [False, True]


async def test_a_server_that_is_not_the_sidecar_is_an_error(streaming: Streaming) -> None:
    with (
        background_provider([HEAD, chunk(b'{"hits": []}\n'), LAST_CHUNK]) as provider,
        pytest.raises(SidecarError, match="is it the sidecar"),
    ):
        await streaming.collect(provider.url)


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
