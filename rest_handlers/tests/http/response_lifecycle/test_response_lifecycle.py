"""Responses that are given up, interrupted, or fail: what the client gets, and that the provider call ends."""

import asyncio

import pytest
from starlette.requests import ClientDisconnect

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.errors import Conflict, Internal, Unavailable, UpstreamError
from opensearch_ml_stream.connectors.wire_format import NDJSON, WireFormat
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponse, InFlightResponses
from tests.asgi_exchange import JSON_HEADERS, SECURITY_HEADERS, Exchange
from tests.scripted_predictions import (
    LIMITS,
    STREAM_PATH,
    Raised,
    ScriptedPredictions,
    Sidecar,
    stream_request,
    text,
)
from tests.virtual_time import in_virtual_time

STOPPING = Unavailable("The server is stopping; the response is incomplete")
DEFECT = Internal("Internal error; the server's log says more", type="exception")
A = NDJSON.chunks(text("a"))


async def test_a_stream_whose_client_disconnects_is_given_up_silently() -> None:
    predictions = ScriptedPredictions(text("a"), asyncio.Event())
    sidecar, exchange = Sidecar(predictions), stream_request()
    async with exchange.running(sidecar.application):
        await sidecar.first_chunk(exchange)
        exchange.disconnect()
    assert predictions.closed.is_set()
    assert exchange.parts == [A]
    assert len(sidecar.in_flight) == 0


@pytest.mark.parametrize("path", [STREAM_PATH, STREAM_PATH + "?stream=false", "/_plugins/_ml/models/m1/_predict"])
async def test_a_provider_that_has_sent_nothing_is_given_up_too(path: str) -> None:
    predictions = ScriptedPredictions(opening=(asyncio.Event(),))
    exchange = stream_request(path)
    async with exchange.running(Sidecar(predictions).application):
        exchange.disconnect()
    assert predictions.closed.is_set()
    assert exchange.messages == []


async def test_messages_that_are_no_disconnect_change_nothing() -> None:
    release = asyncio.Event()
    sidecar, exchange = Sidecar(ScriptedPredictions(text("a"), release, Ending())), stream_request()
    async with exchange.running(sidecar.application):
        await sidecar.first_chunk(exchange)
        exchange.receive_more({"type": "http.request", "body": b"", "more_body": False})
        await asyncio.sleep(0.01)
        release.set()
    assert exchange.parts == [A, NDJSON.ending(Ending(), {})]


async def test_a_disconnect_after_other_messages_is_noticed() -> None:
    predictions = ScriptedPredictions(text("a"), asyncio.Event())
    sidecar, exchange = Sidecar(predictions), stream_request()
    async with exchange.running(sidecar.application):
        await sidecar.first_chunk(exchange)
        exchange.receive_more({"type": "http.request", "body": b"", "more_body": False}, {"type": "http.disconnect"})
    assert predictions.closed.is_set()


async def test_a_defect_before_the_first_byte_is_a_500_that_does_not_tell_what_happened() -> None:
    sidecar, exchange = Sidecar(ScriptedPredictions(opening=(Raised(RuntimeError("a prompt")),))), stream_request()
    with pytest.raises(RuntimeError, match="a prompt"):  # on its way to the server's log
        await exchange.run(sidecar.application)
    assert (exchange.status, exchange.json()) == (500, DEFECT.body())
    assert exchange.complete and len(sidecar.in_flight) == 0


async def test_a_defect_in_a_stream_is_its_terminal_object() -> None:
    exchange = stream_request()
    with pytest.raises(RuntimeError, match="a prompt"):
        await exchange.run(Sidecar(ScriptedPredictions(text("a"), Raised(RuntimeError("a prompt")))).application)
    assert exchange.parts == [A, NDJSON.error(DEFECT)]
    assert exchange.complete


async def test_a_defect_after_the_terminal_object_adds_nothing() -> None:
    exchange = stream_request()
    predictions = ScriptedPredictions(text("a"), Ending(), closing=(Raised(RuntimeError("a prompt")),))
    with pytest.raises(RuntimeError, match="a prompt"):
        await exchange.run(Sidecar(predictions).application)
    assert exchange.parts == [A, NDJSON.ending(Ending(), {})]


async def test_a_server_that_cancels_the_request_is_obeyed() -> None:
    sidecar, exchange = Sidecar(ScriptedPredictions(text("a"), asyncio.Event())), stream_request()
    task = asyncio.create_task(exchange.run(sidecar.application))
    await sidecar.first_chunk(exchange)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert exchange.parts == [A, NDJSON.error(DEFECT)]
    assert len(sidecar.in_flight) == 0


@pytest.mark.parametrize("stop", [True, False], ids=["stop", "disconnect"])
@in_virtual_time
async def test_a_client_that_does_not_read_holds_the_stream_until_it_disconnects_or_the_server_stops(
    stop: bool,
) -> None:
    blocked = asyncio.Event()
    predictions = ScriptedPredictions(text("a"), blocked, text("b"), text("c"), asyncio.Event())
    sidecar, exchange = Sidecar(predictions), stream_request()
    async with exchange.running(sidecar.application):
        await sidecar.first_chunk(exchange)
        exchange.writable.clear()
        blocked.set()
        await asyncio.sleep(4.0)
        assert predictions.provider.writes == [False]  # "c" is not read from the provider
        if stop:
            sidecar.in_flight.interrupt_all()
        else:
            exchange.disconnect()
        await predictions.closed.wait()
        exchange.writable.set()
    assert exchange.parts == ([A, NDJSON.error(STOPPING)] if stop else [A])


def _response(exchange: Exchange, in_flight: InFlightResponses) -> InFlightResponse:
    body = BodyReservation(in_flight.bodies)
    return InFlightResponse(exchange.scope, exchange.receive, exchange.send, in_flight, body, NDJSON)


async def test_a_response_that_is_not_running_cannot_be_interrupted() -> None:
    exchange = stream_request()
    response = _response(exchange, InFlightResponses(LIMITS))
    response.interrupt(ClientDisconnect())
    await response.run(response.end(b"last"))
    assert exchange.messages == [{"type": "http.response.body", "body": b"last", "more_body": False}]


async def _end_after(response: InFlightResponse, seconds: float) -> None:
    await response.start(NDJSON)
    await asyncio.sleep(seconds)
    await response.end(b"last\n")


async def test_the_watch_over_the_client_ends_with_the_response() -> None:
    exchange = Exchange("POST", STREAM_PATH, [], JSON_HEADERS)
    response = _response(exchange, InFlightResponses(LIMITS))
    await response.run(_end_after(response, 0.01))
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    exchange.disconnect()
    assert await exchange.receive() == {"type": "http.disconnect"}  # not taken by the watch


async def test_a_chunk_that_was_written_but_not_sent_comes_before_the_last_objects() -> None:
    exchange = stream_request()
    response = _response(exchange, InFlightResponses(LIMITS))
    assert response.writer.write_chunk(b"chunk") is False
    await response.end(b"last")
    assert exchange.messages == [
        {"type": "http.response.body", "body": b"chunk", "more_body": True},
        {"type": "http.response.body", "body": b"last", "more_body": False},
    ]


async def test_the_head_is_sent_once_with_the_opaque_id_of_the_request() -> None:
    exchange = Exchange("POST", STREAM_PATH, headers={"X-Opaque-Id": "me", "X-Other": "no"})
    exchange.scope["headers"].append((b"x-opaque-id", b"second"))
    response = _response(exchange, InFlightResponses(LIMITS))
    assert response.started is False
    await response.start(NDJSON)
    await response.start(NDJSON)
    assert response.started is True
    assert exchange.messages == [
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [
                (b"content-type", b"application/x-ndjson"),
                (b"cache-control", b"no-cache, no-transform"),
                (b"x-accel-buffering", b"no"),
                *((name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()),
                (b"x-opaque-id", b"me"),
            ],
        }
    ]


@pytest.mark.parametrize("wire", [NDJSON, None], ids=["stream", "whole"])
async def test_an_error_before_the_head_is_a_status(wire: WireFormat | None) -> None:
    exchange = stream_request()
    in_flight = InFlightResponses(LIMITS)
    body = BodyReservation(in_flight.bodies)
    response = InFlightResponse(exchange.scope, exchange.receive, exchange.send, in_flight, body, wire)
    await response.fail(Conflict("taken"))
    assert (exchange.status, exchange.json()) == (409, Conflict("taken").body())


async def test_work_that_fails_by_an_error_that_it_reported_itself_is_not_reported_again() -> None:
    exchange = stream_request()
    response = _response(exchange, InFlightResponses(LIMITS))
    error = UpstreamError("no")
    with pytest.raises(UpstreamError):
        await response.run(_fail_and_raise(response, error))
    assert (exchange.status, exchange.json()) == (424, error.body())
    assert exchange.complete


async def _fail_and_raise(response: InFlightResponse, error: UpstreamError) -> None:
    await response.fail(error)
    raise error
