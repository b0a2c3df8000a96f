"""How many responses a worker has in flight, how long their requests' bodies count, and clients that half-close."""

import asyncio
from dataclasses import replace

import pytest

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.wire_format import NDJSON
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import HALF_CLOSED
from tests.asgi_exchange import JSON_HEADERS, Exchange
from tests.scripted_predictions import BODY, LIMITS, STREAM_PATH, ScriptedPredictions, Sidecar, stream_request, text
from tests.virtual_time import in_virtual_time

PREDICT_PATH = "/_plugins/_ml/models/m1/_predict"
A = NDJSON.chunks(text("a"))


@pytest.mark.parametrize("path", [STREAM_PATH, PREDICT_PATH])
async def test_more_responses_than_the_limit_are_refused_before_their_body_is_read(path: str) -> None:
    release = asyncio.Event()
    sidecar = Sidecar(ScriptedPredictions(text("a"), release, Ending()), replace(LIMITS, max_streams=1))
    first, second = stream_request(), Exchange("POST", path, [], JSON_HEADERS)  # the second one sends no body
    async with first.running(sidecar.application):
        await sidecar.first_chunk(first)
        await second.run(sidecar.application)
        release.set()
    assert (second.status, second.headers["retry-after"]) == (429, "1")
    assert "opensearch_ml_stream.max_streams" in second.reason()
    sidecar.in_flight.check_room()


async def test_requests_whose_bodies_come_at_the_same_time_are_counted_too() -> None:
    release = asyncio.Event()
    sidecar = Sidecar(ScriptedPredictions(text("a"), release, Ending()), replace(LIMITS, max_streams=1))
    slow, fast = Exchange("POST", STREAM_PATH, [], JSON_HEADERS), stream_request()
    async with slow.running(sidecar.application):
        await asyncio.sleep(0)
        async with fast.running(sidecar.application):
            await sidecar.first_chunk(fast)
            slow.receive_more({"type": "http.request", "body": BODY, "more_body": False})
            await slow.until_sent(1)
            release.set()
    assert (slow.status, fast.status) == (429, 200)


async def test_a_prompt_counts_until_the_provider_responds() -> None:
    opening, release = asyncio.Event(), asyncio.Event()
    sidecar = Sidecar(ScriptedPredictions(text("a"), release, Ending(), opening=(opening,)))
    bodies = sidecar.in_flight.bodies
    exchange = stream_request()
    async with exchange.running(sidecar.application):
        async with asyncio.timeout(5):
            while bodies.reserved == 0:  # noqa: ASYNC110 - nothing says that it was read
                await asyncio.sleep(0)
        assert bodies.reserved == len(BODY)
        opening.set()
        await sidecar.first_chunk(exchange)
        assert bodies.reserved == 0
        release.set()


@pytest.mark.parametrize("path", [STREAM_PATH, PREDICT_PATH])
@pytest.mark.parametrize("body", [b"{", BODY + b" " * LIMITS.max_body_size, BODY])
async def test_no_body_counts_when_its_response_has_ended(path: str, body: bytes) -> None:
    failing = UpstreamError("no")
    for predictions in (ScriptedPredictions(text("a"), Ending()), ScriptedPredictions(failing)):
        sidecar = Sidecar(predictions)
        await Exchange("POST", path, body, JSON_HEADERS).run(sidecar.application)
        await Exchange("POST", path, [body[:1]], JSON_HEADERS, cut=True).run(sidecar.application)
        assert sidecar.in_flight.bodies.reserved == 0


@in_virtual_time
async def test_a_client_that_closes_its_side_gets_a_heartbeat_at_once_and_its_stream() -> None:
    sidecar, exchange = Sidecar(ScriptedPredictions(text("a"), 2.0, Ending())), stream_request()
    async with exchange.running(sidecar.application):
        await sidecar.first_chunk(exchange)
        exchange.receive_more({"type": HALF_CLOSED})
        await exchange.until_sent(3)
        assert asyncio.get_running_loop().time() == 0.0
    assert exchange.parts == [A, NDJSON.heartbeat, NDJSON.ending(Ending(), {})]


@pytest.mark.parametrize("path", [STREAM_PATH, PREDICT_PATH])
@in_virtual_time
async def test_a_client_that_closes_its_side_before_the_response_gets_it_whole(path: str) -> None:
    sidecar = Sidecar(ScriptedPredictions(text("a"), Ending(), opening=(2.0,)))
    exchange = stream_request(path)
    async with exchange.running(sidecar.application):
        exchange.receive_more({"type": HALF_CLOSED})
        await asyncio.sleep(1)
        assert exchange.messages == []
    assert exchange.status == 200
    assert exchange.complete
