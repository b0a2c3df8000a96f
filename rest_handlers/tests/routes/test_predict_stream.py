"""Streams as their clients get them: message by message, in the format that they ask for."""

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, TextRun, ToolCall, Usage
from opensearch_ml_stream.connectors.wire_format import NDJSON, SSE, WireFormat
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import CHUNK_WRITER
from tests.asgi_exchange import JSON_HEADERS, SECURITY_HEADERS, Exchange, send_request
from tests.scripted_predictions import QUESTION, STREAM_PATH, Last, ScriptedPredictions, Sidecar, text

END = Ending("stop", "end_turn", Usage(input_tokens=1, output_tokens=2), "gpt-fake")
SSE_PATH = STREAM_PATH + "?format=sse"
INTERFACE = {"_llm_interface": "openai/v1/chat/completions"}
PLAIN_HEAD = {
    "content-type": "application/x-ndjson",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
    **SECURITY_HEADERS,
}


async def stream(
    predictions: ScriptedPredictions,
    path: str = STREAM_PATH,
    body: object = QUESTION,
    headers: dict[str, str] | None = None,
) -> Exchange:
    exchange = await send_request(Sidecar(predictions).application, "POST", path, body, headers)
    assert exchange.complete
    return exchange


async def test_a_stream_is_a_head_then_a_message_for_each_read_then_the_terminal_object() -> None:
    predictions = ScriptedPredictions(text("For", "ty"), text("-two"), Last(text("!"), END))
    exchange = await stream(predictions)
    assert (exchange.status, exchange.headers) == (200, PLAIN_HEAD)
    assert exchange.messages[1:] == [
        {"type": "http.response.body", "body": NDJSON.chunks(text("For", "ty")), "more_body": True},
        {"type": "http.response.body", "body": NDJSON.chunks(text("-two")), "more_body": True},
        {
            "type": "http.response.body",
            "body": NDJSON.chunks(text("!")) + NDJSON.ending(END, {}),
            "more_body": False,
        },
    ]
    assert predictions.requests == [("stream", "m1", {"inputs": "Why?"})]
    assert predictions.closed.is_set()


async def test_the_objects_of_ndjson_are_those_of_the_rfc() -> None:
    exchange = await stream(ScriptedPredictions(text("For"), END))
    assert exchange.body.decode() == (
        '{"inference_results":[{"output":[{"name":"response","dataAsMap":{"response":"For"}}],"status_code":200}]}\n'
        '{"inference_results":[{"output":[{"name":"response","dataAsMap":{"response":"","is_last":true,'
        '"finish_reason":"stop","native_finish_reason":"end_turn",'
        '"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3},"model":"gpt-fake"}}],"status_code":200}]}\n'
    )


async def test_the_objects_of_server_sent_events_are_those_of_ml_commons() -> None:
    exchange = await stream(ScriptedPredictions(text("For"), Ending()), SSE_PATH)
    assert exchange.headers == {**PLAIN_HEAD, "content-type": "text/event-stream"}
    assert exchange.body.decode() == (
        'data: {"inference_results":[{"output":[{"name":"response","dataAsMap":{"content":"For","is_last":false}}]}]}'
        "\n\n"
        'data: {"inference_results":[{"output":[{"name":"response","dataAsMap":'
        '{"content":"","is_last":true,"finish_reason":"stop"}}]}]}\n\n'
    )


CHUNKS: list[Chunks] = [
    [Chunk(reasoning="hmm"), Chunk("Hi")],
    [Chunk(tool_calls=(ToolCall(0, "call_0", "weather", "{}"),))],
    TextRun(b"one\0two\\n"),
]


@pytest.mark.parametrize("chunks", CHUNKS, ids=["reasoning", "tool call", "text run"])
@pytest.mark.parametrize(("path", "wire"), [(STREAM_PATH, NDJSON), (SSE_PATH, SSE)], ids=["ndjson", "sse"])
async def test_chunks_of_every_kind_are_written_first_midway_and_last(
    chunks: Chunks, path: str, wire: WireFormat
) -> None:
    exchange = await stream(ScriptedPredictions(chunks, chunks, Last(chunks, END)), path)
    part = wire.chunks(chunks)
    assert exchange.parts == [part, part, part + wire.ending(END, {})]


@pytest.mark.parametrize(
    ("query", "accept", "parameters", "wire"),
    [
        ("", None, {}, NDJSON),
        ("", "text/event-stream", {}, SSE),
        ("?format=json", "text/event-stream", {}, NDJSON),
        ("?format=sse&pretty&human=true", "application/json", {}, SSE),
        ("?stream=true", None, {}, NDJSON),
        ("", None, INTERFACE, SSE),
        ("", "application/x-ndjson", INTERFACE, NDJSON),
    ],
)
async def test_the_client_chooses_the_format(
    query: str, accept: str | None, parameters: dict[str, str], wire: WireFormat
) -> None:
    predictions = ScriptedPredictions(text("a"), END)
    headers = {} if accept is None else {"accept": accept}
    exchange = await stream(predictions, STREAM_PATH + query, {"parameters": {"inputs": "x", **parameters}}, headers)
    assert exchange.headers["content-type"] == wire.content_type
    assert exchange.parts == [wire.chunks(text("a")), wire.ending(END, {})]
    assert predictions.requests == [("stream", "m1", {"inputs": "x", **parameters})]


async def test_the_opaque_id_of_the_request_comes_back_in_the_head() -> None:
    exchange = await stream(ScriptedPredictions(text("a"), END), headers={"X-Opaque-Id": "me"})
    assert exchange.headers == {**PLAIN_HEAD, "x-opaque-id": "me"}


@pytest.mark.parametrize("chunks", [text("all"), []], ids=["one chunk", "no chunk"])
async def test_a_response_that_comes_in_one_read_is_one_message(chunks: list[Chunk]) -> None:
    exchange = await stream(ScriptedPredictions(Last(chunks, END)))
    assert exchange.parts == [NDJSON.chunks(chunks) + NDJSON.ending(END, {})]


@pytest.mark.parametrize("extra", [{}, {"model_id": "m2"}])
async def test_what_a_stream_says_beside_its_ending_is_in_the_terminal_object(extra: dict[str, str]) -> None:
    exchange = await stream(ScriptedPredictions(text("a"), END, extra=extra))
    assert exchange.parts[-1] == NDJSON.ending(END, extra)


@pytest.mark.parametrize("path", [STREAM_PATH, STREAM_PATH + "/"])
@pytest.mark.parametrize("model_id", ["m1", "a model.of_mine-2"])
async def test_a_slash_at_the_end_of_the_path_makes_no_difference(path: str, model_id: str) -> None:
    predictions = ScriptedPredictions(text("a"), END)
    await stream(predictions, path.replace("m1", model_id))
    assert predictions.requests == [("stream", model_id, {"inputs": "Why?"})]


async def test_the_action_type_of_the_body_goes_to_the_stream() -> None:
    predictions = ScriptedPredictions(text("a"), END)
    await stream(predictions, body={**QUESTION, "action_type": "execute"})
    assert predictions.requests == [("stream", "m1", {"inputs": "Why?"}, "EXECUTE")]


async def test_an_input_that_is_not_parameters_streams_without_them() -> None:
    predictions = ScriptedPredictions(text("a"), END)
    exchange = await stream(predictions, body={"text_docs": ["x"], "parameters": INTERFACE})
    assert predictions.requests == [("stream", "m1", {})]
    assert exchange.headers["content-type"] == "text/event-stream"


async def test_the_terminal_object_does_not_wait_for_the_end_of_the_provider_call() -> None:
    exchange = Exchange("POST", STREAM_PATH, b'{"parameters": {}}', JSON_HEADERS)
    predictions = ScriptedPredictions(text("a"), END, closing=(exchange.body_ended,))
    await exchange.run(Sidecar(predictions).application)
    assert exchange.complete and predictions.closed.is_set()


class FastWriter:
    """A ChunkWriter of a server that is never full."""

    last_write = 0.0

    def __init__(self) -> None:
        self.chunks: list[bytes] = []

    def write_chunk(self, data: bytes) -> bool:
        self.chunks.append(data)
        return True

    async def drain(self) -> None:
        self.chunks.append(b"drained")


async def test_a_server_that_offers_a_writer_gets_the_chunks_by_it_and_head_and_end_by_messages() -> None:
    writer = FastWriter()
    predictions = ScriptedPredictions(text("a"), text("b"), text("c"), Last(text("d"), END))
    exchange = Exchange("POST", STREAM_PATH, b'{"parameters": {}}', JSON_HEADERS, {CHUNK_WRITER: writer})
    await exchange.run(Sidecar(predictions).application)
    a, b, c, d = (NDJSON.chunks(text(one)) for one in "abcd")
    assert writer.chunks == [a, b"drained", b, c, b"drained"]
    assert exchange.parts == [d + NDJSON.ending(END, {})]
    assert exchange.complete


async def test_every_other_path_goes_to_the_router() -> None:
    sidecar = Sidecar(ScriptedPredictions())
    for path in ("/", STREAM_PATH + "/x", "/x" + STREAM_PATH, STREAM_PATH.replace("m1", "a/b")):
        exchange = await send_request(sidecar.application, "POST", path, QUESTION)
        assert (exchange.status, exchange.json()) == (
            400,
            {"error": f"no handler found for uri [{path}] and method [POST]"},
        )


async def test_what_is_not_http_goes_to_the_router() -> None:
    exchange = Exchange()
    exchange.scope = {"type": "lifespan"}
    exchange.receive_more({"type": "lifespan.startup"}, {"type": "lifespan.shutdown"})
    await Sidecar(ScriptedPredictions()).application(exchange.scope, exchange.receive, exchange.send)
    assert [message["type"] for message in exchange.messages] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
