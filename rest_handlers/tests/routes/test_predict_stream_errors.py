"""Errors of `_predict/stream`: a status before the first byte, one terminal object after it."""

import json

import pytest

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.errors import (
    Forbidden,
    MLStreamError,
    NotFound,
    StreamTruncated,
    Throttled,
    UpstreamError,
)
from opensearch_ml_stream.connectors.wire_format import NDJSON, SSE, WireFormat
from tests.asgi_exchange import JSON_HEADERS, Exchange, send_request
from tests.scripted_predictions import LIMITS, QUESTION, STREAM_PATH, Last, Raised, ScriptedPredictions, Sidecar, text

SSE_PATH = STREAM_PATH + "?format=sse"
BOTH = pytest.mark.parametrize(("path", "wire"), [(STREAM_PATH, NDJSON), (SSE_PATH, SSE)], ids=["ndjson", "sse"])
ERRORS = [
    Forbidden("Streaming is disabled"),
    NotFound("no such model"),
    UpstreamError("refused", provider_status=401),
    UpstreamError("wrong", provider_status=422),
    StreamTruncated("cut off"),
]


async def post(predictions: ScriptedPredictions, path: str = STREAM_PATH, body: object = QUESTION) -> Exchange:
    sidecar = Sidecar(predictions)
    exchange = await send_request(sidecar.application, "POST", path, body)
    assert exchange.complete and len(sidecar.in_flight) == 0
    return exchange


@BOTH
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: f"{type(error).__name__} {error.status}")
async def test_an_error_while_the_stream_is_opened_is_a_status(
    path: str, wire: WireFormat, error: MLStreamError
) -> None:
    predictions = ScriptedPredictions(opening=(Raised(error),))
    exchange = await post(predictions, path)
    assert (exchange.status, exchange.json()) == (error.status, error.body())
    assert exchange.headers["content-type"] == "application/json; charset=UTF-8"
    assert predictions.closed.is_set()


@BOTH
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: f"{type(error).__name__} {error.status}")
async def test_an_outcome_that_is_an_error_without_any_chunk_is_a_status(
    path: str, wire: WireFormat, error: MLStreamError
) -> None:
    exchange = await post(ScriptedPredictions(error), path)
    assert (exchange.status, exchange.json()) == (error.status, error.body())


@BOTH
async def test_an_error_after_the_first_chunk_is_the_terminal_object(path: str, wire: WireFormat) -> None:
    error = UpstreamError("overloaded", provider_status=529)
    predictions = ScriptedPredictions(text("a"), text("b"), error)
    exchange = await post(predictions, path)
    assert exchange.status == 200
    assert exchange.parts == [wire.chunks(text("a")), wire.chunks(text("b")), wire.error(error)]
    assert predictions.closed.is_set()


@BOTH
async def test_an_error_that_comes_with_chunks_follows_them(path: str, wire: WireFormat) -> None:
    error = StreamTruncated("cut off")
    last = wire.chunks(text("b")) + wire.error(error)
    assert (await post(ScriptedPredictions(Last(text("b"), error)), path)).parts == [last]
    exchange = await post(ScriptedPredictions(text("a"), Last(text("b"), error)), path)
    assert exchange.parts == [wire.chunks(text("a")), last]


async def test_the_terminal_error_of_ndjson_is_opensearchs_error_body() -> None:
    exchange = await post(ScriptedPredictions(text("a"), UpstreamError("over", provider_status=500)))
    cause = {"type": "status_exception", "reason": "over"}
    error = {"root_cause": [cause], **cause, "provider_status": 500}
    assert json.loads(exchange.parts[-1]) == {"error": error, "status": 424}


async def test_the_terminal_error_of_server_sent_events_has_the_reason_as_a_string() -> None:
    exchange = await post(ScriptedPredictions(text("a"), UpstreamError("over", provider_status=500)), SSE_PATH)
    assert exchange.parts[-1] == (
        b'data: {"error":"over","type":"status_exception","status":424,"provider_status":500}\n\n'
    )


async def test_an_error_raised_while_chunks_are_read_is_the_terminal_object() -> None:
    error = UpstreamError("broke")
    exchange = await post(ScriptedPredictions(text("a"), Raised(error)))
    assert exchange.parts == [NDJSON.chunks(text("a")), NDJSON.error(error)]


@BOTH
async def test_a_provider_call_that_cannot_be_wound_up_adds_nothing_to_a_response_that_has_ended(
    path: str, wire: WireFormat
) -> None:
    predictions = ScriptedPredictions(text("a"), Ending(), closing=(Raised(UpstreamError("too late")),))
    exchange = await post(predictions, path)
    assert exchange.parts == [wire.chunks(text("a")), wire.ending(Ending(), {})]


async def test_a_limit_has_a_retry_after_header() -> None:
    exchange = await post(ScriptedPredictions(opening=(Raised(Throttled("slow down", retry_after="7")),)))
    assert (exchange.status, exchange.headers["retry-after"]) == (429, "7")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("?format=xml", "Unknown format [xml]; use sse or json"),
        ("?foo=1", "request [/_plugins/_ml/models/m1/_predict/stream] contains unrecognized parameter: [foo]"),
        ("?pretty=maybe", "Failed to parse value [maybe] as only [true] or [false] are allowed."),
    ],
)
async def test_a_wrong_query_is_refused_before_anything_is_opened(query: str, reason: str) -> None:
    predictions = ScriptedPredictions()
    exchange = await post(predictions, STREAM_PATH + query)
    assert (exchange.status, exchange.reason(), predictions.requests) == (400, reason, [])


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (None, 400, "request body is required"),
        (b"[]", 400, "The request body must be a JSON object"),
        ({"parameters": 1}, 400, "parameters must be a JSON object"),
        ({"parameters": {"inputs": "x" * LIMITS.max_body_size}}, 413, "The request body is larger than 1000 bytes"),
    ],
)
async def test_a_wrong_body_is_refused_before_anything_is_opened(body: object, status: int, reason: str) -> None:
    predictions = ScriptedPredictions()
    exchange = await post(predictions, body=body)
    assert (exchange.status, predictions.requests) == (status, [])
    assert exchange.reason().startswith(reason)


async def test_a_body_that_is_not_json_by_its_content_type_is_not_acceptable() -> None:
    predictions = ScriptedPredictions()
    exchange = Exchange("POST", STREAM_PATH, b"{}", {"content-type": "text/plain"})
    await exchange.run(Sidecar(predictions).application)
    assert (exchange.status, predictions.requests) == (406, [])


async def test_a_refusal_is_pretty_and_whole_and_has_the_opaque_id() -> None:
    target = STREAM_PATH + "?pretty&filter_path=status&foo"
    exchange = Exchange("POST", target, b"{}", {**JSON_HEADERS, "X-Opaque-Id": "me"})
    await exchange.run(Sidecar(ScriptedPredictions()).application)
    assert exchange.body.startswith(b'{\n  "error" : {\n    "root_cause" : [') and exchange.body.endswith(b"\n}\n")
    assert exchange.headers["x-opaque-id"] == "me"


async def test_a_client_that_disconnects_within_its_request_gets_nothing() -> None:
    predictions = ScriptedPredictions()
    exchange = Exchange("POST", STREAM_PATH, b'{"parameters"', JSON_HEADERS, cut=True)
    await exchange.run(Sidecar(predictions).application)
    assert (exchange.messages, predictions.requests) == ([], [])


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "post"])
@pytest.mark.parametrize("slash", ["", "/"])
async def test_a_stream_is_posted(method: str, slash: str) -> None:
    predictions = ScriptedPredictions(text("a"), Ending())
    path = STREAM_PATH + slash
    exchange = await send_request(Sidecar(predictions).application, method, path, QUESTION)
    text_of_error = f"Incorrect HTTP method for uri [{path}] and method [{method}], allowed: [POST]"
    assert (exchange.status, exchange.headers["allow"]) == (405, "POST")
    assert (exchange.json(), predictions.requests) == ({"error": text_of_error, "status": 405}, [])


async def test_options_of_a_stream_names_its_method() -> None:
    exchange = await send_request(Sidecar(ScriptedPredictions()).application, "OPTIONS", STREAM_PATH)
    assert (exchange.status, exchange.headers["allow"], exchange.body) == (200, "POST", b"")
