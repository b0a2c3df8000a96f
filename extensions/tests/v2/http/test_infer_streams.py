"""Streams of inferences as their clients get them."""

import asyncio
import gzip
import json
import zlib
from dataclasses import replace
from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.errors import UpstreamError
from tests.asgi_exchange import JSON_HEADERS, Exchange, send_request
from tests.scripted_predictions import LIMITS, Last, Raised, ScriptedPredictions, text
from tests.v2.http.scripted_inferences import (
    STREAM_PATH,
    TENSORS,
    FastWriter,
    ScriptedInferences,
    V2Sidecar,
    stream_request,
)
from tests.virtual_time import in_virtual_time

END = Ending("stop", "end_turn", Usage(input_tokens=1, output_tokens=2), "gpt-fake")
FAILED = UpstreamError("the provider is gone")


def events(body: bytes) -> list[dict[str, Any]]:
    """The events of a whole body of server-sent events; heartbeats are skipped."""
    lines = body.decode().split("\n")
    return [json.loads(line.removeprefix("data: ")) for line in lines if line and not line.startswith(":")]


def texts(body: bytes) -> list[str]:
    return ["".join(event["outputs"][0]["data"]) for event in events(body)]


async def stream(predictions: ScriptedPredictions, body: object = TENSORS) -> Exchange:
    sidecar = V2Sidecar(ScriptedInferences(predictions))
    exchange = await send_request(sidecar.application, "POST", STREAM_PATH, body)
    assert exchange.complete and len(sidecar.in_flight) == 0
    return exchange


async def test_a_stream_is_an_event_for_each_chunk_and_its_last_one_tells_the_end() -> None:
    exchange = await stream(ScriptedPredictions(text("For", "ty"), Last(text("-two"), END)))
    assert exchange.status == 200
    assert exchange.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert exchange.headers["cache-control"] == "no-cache, no-transform"
    assert exchange.headers["x-accel-buffering"] == "no"
    assert texts(exchange.body) == ["For", "ty", "-two"]
    *before, last = events(exchange.body)
    assert [event["parameters"] for event in before] == [{}, {}]
    assert last["parameters"]["finish_reason"] == "stop"
    assert {event["id"] for event in (*before, last)} == {"r1"}


async def test_a_stream_of_the_generate_extension_has_its_events() -> None:
    exchange = await stream(ScriptedPredictions(text("Hi"), END), {"text_input": "Why?"})
    assert [event["text_output"] for event in events(exchange.body)] == ["Hi", ""]


async def test_an_error_before_the_first_event_is_a_status() -> None:
    exchange = await stream(ScriptedPredictions(FAILED))
    assert (exchange.status, exchange.json()) == (424, {"error": "the provider is gone"})


async def test_an_error_within_the_stream_is_its_last_event() -> None:
    exchange = await stream(ScriptedPredictions(text("For"), Last(text("ty"), FAILED)))
    assert exchange.status == 200
    *responses, error = events(exchange.body)
    assert ["".join(event["outputs"][0]["data"]) for event in responses] == ["For", "ty"]
    assert error == {"error": "the provider is gone", "type": "status_exception", "status": 424}


async def test_a_defect_is_an_error_in_the_protocols_words() -> None:
    sidecar = V2Sidecar(ScriptedInferences(ScriptedPredictions(opening=(Raised(ZeroDivisionError("secret")),))))
    exchange = stream_request()
    with pytest.raises(ZeroDivisionError):
        await exchange.run(sidecar.application)
    assert (exchange.status, exchange.json()) == (500, {"error": "Internal error; the server's log says more"})


async def test_a_disconnect_ends_the_providers_call() -> None:
    predictions = ScriptedPredictions(text("a"), asyncio.Event())
    sidecar = V2Sidecar(ScriptedInferences(predictions))
    exchange = stream_request()
    async with exchange.running(sidecar.application):
        await exchange.until_sent(2)
        exchange.disconnect()
    assert predictions.closed.is_set() and len(sidecar.in_flight) == 0


@pytest.mark.parametrize("path", ["infer", "generate"])
@in_virtual_time
async def test_a_disconnect_ends_a_whole_inference_too(path: str) -> None:
    predictions = ScriptedPredictions(opening=(asyncio.Event(),))
    sidecar = V2Sidecar(ScriptedInferences(predictions))
    exchange = Exchange("POST", f"/v2/models/m1/{path}", json.dumps(TENSORS).encode(), JSON_HEADERS)
    async with exchange.running(sidecar.application):
        await asyncio.sleep(1)
        exchange.disconnect()
    assert predictions.closed.is_set() and exchange.messages == []


@in_virtual_time
async def test_a_slow_provider_is_bridged_by_the_head_and_heartbeats() -> None:
    predictions = ScriptedPredictions(18.0, text("a"), 16.0, END)
    exchange = await stream_request().run(V2Sidecar(ScriptedInferences(predictions)).application)
    parts = list(zip(exchange.send_times, [b"", *exchange.parts], strict=True))
    assert parts[:2] == [(5.0, b""), (5.0, b": ping\n")]
    assert [time for time, _ in parts[2:]] == [18.0, 33.0, 34.0]
    assert parts[3] == (33.0, b": ping\n")
    assert texts(exchange.body) == ["a", ""]


@in_virtual_time
async def test_a_stop_ends_a_stream_with_an_error() -> None:
    sidecar = V2Sidecar(ScriptedInferences(ScriptedPredictions(text("a"), asyncio.Event())))
    exchange = stream_request()
    async with exchange.running(sidecar.application):
        await exchange.until_sent(2)
        await sidecar.in_flight.drain(1.0)
    assert events(exchange.body)[-1]["status"] == 503


async def test_nothing_is_sent_for_a_request_that_is_cut_off() -> None:
    inferences = ScriptedInferences()
    exchange = Exchange("POST", STREAM_PATH, b'{"inputs"', JSON_HEADERS, cut=True)
    sidecar = V2Sidecar(inferences)
    await exchange.run(sidecar.application)
    assert exchange.messages == [] and inferences.calls == [] and sidecar.in_flight.bodies.reserved == 0


async def test_a_compressed_stream_can_be_read_event_by_event() -> None:
    writer = FastWriter()
    predictions = ScriptedPredictions(text("one"), text("two"), Last([Chunk("three")], END))
    exchange = await stream_request(writer, accept_encoding="gzip, deflate").run(
        V2Sidecar(ScriptedInferences(predictions)).application
    )
    assert exchange.headers["content-encoding"] == "gzip"
    assert exchange.headers["vary"] == "Accept-Encoding"
    reader = zlib.decompressobj(31)
    read = [reader.decompress(part) for part in (*writer.written, exchange.body)]
    assert [texts(part) for part in read] == [["one"], ["two"], ["three"]]
    assert reader.eof
    assert gzip.decompress(b"".join(writer.written) + exchange.body) == b"".join(read)


async def test_the_error_of_a_compressed_stream_is_compressed_too() -> None:
    writer = FastWriter()
    sidecar = V2Sidecar(ScriptedInferences(ScriptedPredictions(text("a"), FAILED)))
    exchange = await stream_request(writer, accept_encoding="gzip").run(sidecar.application)
    assert events(gzip.decompress(b"".join(writer.written) + exchange.body))[-1]["error"] == "the provider is gone"


@in_virtual_time
async def test_the_heartbeats_of_a_compressed_stream_are_compressed_too() -> None:
    writer = FastWriter()
    sidecar = V2Sidecar(ScriptedInferences(ScriptedPredictions(6.0, text("a"), END)))
    exchange = await stream_request(writer, accept_encoding="gzip").run(sidecar.application)
    body = gzip.decompress(b"".join(writer.written) + exchange.body)
    assert body.startswith(b": ping\n") and texts(body) == ["a", ""]


async def test_an_error_before_the_first_event_is_not_compressed() -> None:
    sidecar = V2Sidecar(ScriptedInferences(ScriptedPredictions(FAILED)))
    exchange = await stream_request(FastWriter(), accept_encoding="gzip").run(sidecar.application)
    assert (exchange.status, exchange.json()) == (424, {"error": "the provider is gone"})
    assert "content-encoding" not in exchange.headers


@pytest.mark.parametrize(
    ("accepted", "has_writer", "is_on"),
    [("gzip;q=0", True, True), ("identity", True, True), ("gzip", False, True), ("gzip", True, False)],
)
async def test_a_stream_is_not_compressed_where_it_cannot_or_may_not_be(
    accepted: str, has_writer: bool, is_on: bool
) -> None:
    writer = FastWriter() if has_writer else None
    sidecar = V2Sidecar(ScriptedInferences(ScriptedPredictions(text("a"), END)), gzip=is_on)
    exchange = await stream_request(writer, accept_encoding=accepted).run(sidecar.application)
    assert "content-encoding" not in exchange.headers
    assert exchange.headers.get("vary") == ("Accept-Encoding" if is_on else None)
    assert texts(b"".join(writer.written if writer else []) + exchange.body) == ["a", ""]


async def test_streams_beyond_their_number_are_refused() -> None:
    sidecar = V2Sidecar(ScriptedInferences(), replace(LIMITS, max_streams=0))
    exchange = await stream_request().run(sidecar.application)
    assert exchange.status == 429 and exchange.headers["retry-after"] == "1"
