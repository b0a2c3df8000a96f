"""A stop of the server: responses in flight may end within the grace time, then each ends with one error."""

import asyncio

import pytest

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.connectors.wire_format import NDJSON
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponse, InFlightResponses
from tests.asgi_exchange import JSON_HEADERS, Exchange
from tests.scripted_predictions import BODY, LIMITS, STREAM_PATH, ScriptedPredictions, Sidecar, stream_request, text
from tests.virtual_time import in_virtual_time

STOPPING = Unavailable("The server is stopping; the response is incomplete")
A = NDJSON.chunks(text("a"))


async def test_a_stop_ends_a_stream_with_one_error_object() -> None:
    predictions = ScriptedPredictions(text("a"), asyncio.Event())
    sidecar, exchange = Sidecar(predictions), stream_request()
    async with exchange.running(sidecar.application):
        await sidecar.first_chunk(exchange)
        sidecar.in_flight.interrupt_all()
    assert exchange.parts == [A, NDJSON.error(STOPPING)]
    assert exchange.complete and predictions.closed.is_set()


@pytest.mark.parametrize("path", [STREAM_PATH, "/_plugins/_ml/models/m1/_predict"])
@in_virtual_time
async def test_a_stop_ends_what_has_not_started_with_a_503(path: str) -> None:
    sidecar, exchange = Sidecar(ScriptedPredictions(opening=(asyncio.Event(),))), stream_request(path)
    async with exchange.running(sidecar.application):
        await asyncio.sleep(1)
        sidecar.in_flight.interrupt_all()
    assert (exchange.status, exchange.json()) == (503, STOPPING.body())
    assert exchange.complete


@in_virtual_time
async def test_a_second_stop_and_a_disconnect_in_the_middle_of_the_first_change_nothing() -> None:
    predictions = ScriptedPredictions(text("a"), asyncio.Event(), closing=(1.0,))
    sidecar, exchange = Sidecar(predictions), stream_request()
    async with exchange.running(sidecar.application):
        await sidecar.first_chunk(exchange)
        sidecar.in_flight.interrupt_all()
        await asyncio.sleep(0.5)
        sidecar.in_flight.interrupt_all()
        exchange.disconnect()
    assert predictions.closed.is_set()
    assert (exchange.parts, exchange.send_times[-1]) == ([A, NDJSON.error(STOPPING)], 1.0)


@in_virtual_time
async def test_a_stop_after_a_disconnect_sends_nothing() -> None:
    predictions = ScriptedPredictions(text("a"), asyncio.Event(), closing=(1.0,))
    sidecar, exchange = Sidecar(predictions), stream_request()
    async with exchange.running(sidecar.application):
        await sidecar.first_chunk(exchange)
        exchange.disconnect()
        await asyncio.sleep(0.5)
        sidecar.in_flight.interrupt_all()
    assert exchange.parts == [A]


@in_virtual_time
async def test_a_stop_after_the_terminal_object_changes_nothing() -> None:
    predictions = ScriptedPredictions(text("a"), Ending(), closing=(1.0,))
    sidecar, exchange = Sidecar(predictions), stream_request()
    async with exchange.running(sidecar.application):
        await exchange.until_sent(3)
        sidecar.in_flight.interrupt_all()
        exchange.disconnect()
    assert exchange.parts == [A, NDJSON.ending(Ending(), {})]
    assert predictions.closed.is_set()
    assert asyncio.get_running_loop().time() == 1.0


@in_virtual_time
async def test_drain_waits_for_all_responses_and_interrupts_none_of_them() -> None:
    sidecar = Sidecar(ScriptedPredictions(text("a"), 2.0, Ending()))
    other = Exchange("POST", STREAM_PATH, BODY, JSON_HEADERS)
    exchange = stream_request()
    reservation = BodyReservation(sidecar.in_flight.bodies)
    slow = InFlightResponse(other.scope, other.receive, other.send, sidecar.in_flight, reservation, NDJSON)
    async with exchange.running(sidecar.application):
        work = asyncio.create_task(slow.run(_end_after(slow, 3.0)))
        await exchange.until_sent(2)
        assert len(sidecar.in_flight) == 2
        await sidecar.in_flight.drain(10.0)
        assert asyncio.get_running_loop().time() == 3.0
    await work
    assert exchange.parts == [A, NDJSON.ending(Ending(), {})]
    assert other.parts == [b"last\n"]


@in_virtual_time
async def test_drain_interrupts_what_is_left_after_the_grace_time() -> None:
    sidecar, exchange = Sidecar(ScriptedPredictions(text("a"), asyncio.Event())), stream_request()
    async with exchange.running(sidecar.application):
        await sidecar.first_chunk(exchange)
        await sidecar.in_flight.drain(4.0)
    assert exchange.parts == [A, NDJSON.error(STOPPING)]
    assert exchange.send_times[-1] == 4.0


async def test_drain_returns_at_once_without_responses_in_flight() -> None:
    in_flight = InFlightResponses(LIMITS)
    async with asyncio.timeout(5):
        await in_flight.drain(0)
        await in_flight.drain(1000)
    assert len(in_flight) == 0


async def _end_after(response: InFlightResponse, seconds: float) -> None:
    await response.start(NDJSON)
    await asyncio.sleep(seconds)
    await response.end(b"last\n")


@in_virtual_time
async def test_a_request_that_was_interrupted_leaves_its_task_uncancelled() -> None:
    sidecar, exchange = Sidecar(ScriptedPredictions(text("a"), asyncio.Event())), stream_request()

    async def serve() -> int:
        await exchange.run(sidecar.application)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    task = asyncio.create_task(serve())
    await sidecar.first_chunk(exchange)
    sidecar.in_flight.interrupt_all()
    assert await task == 0
