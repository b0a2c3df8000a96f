"""`/_ui/statistics`: an event each second, until somebody has had enough."""

import asyncio
import json

from starlette.applications import Starlette

from opensearch_ml_stream.connectors.errors import Forbidden, Unavailable
from opensearch_ml_stream.extensions.playground.http.live_statistics import EVENTS_OF_A_RIGHT, MAX_OPEN
from opensearch_ml_stream.rest_handlers.callers import Caller, Scope
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses
from tests.asgi_exchange import SECURITY_HEADERS, Exchange, send_request
from tests.playground.http.recording_playground import FIGURES, RecordingPlayground, playground_application
from tests.recording_gate import RecordingGate
from tests.scripted_predictions import LIMITS
from tests.virtual_time import in_virtual_time

PATH = "/_ui/statistics"
EVENT = b"event: statistics\ndata: " + json.dumps(FIGURES, separators=(",", ":")).encode() + b"\n\n"


class ForgettingGate(RecordingGate):
    """Lets a caller in once."""

    async def admit(self, scope: Scope, *actions: str) -> Caller:
        caller = await super().admit(scope, *actions)
        if len(self.asked) > 1:
            raise Forbidden("no permissions any more")
        return caller


class Watched:
    def __init__(self, gate: RecordingGate | None = None) -> None:
        self.gate = gate or RecordingGate()
        self.playground = RecordingPlayground()
        self.in_flight = InFlightResponses(LIMITS)
        self.application: Starlette = playground_application(self.playground, self.gate, self.in_flight)

    def watch(self) -> tuple[Exchange, "asyncio.Task[Exchange]"]:
        exchange = Exchange(target=PATH)
        return exchange, asyncio.create_task(exchange.run(self.application))


def events(exchange: Exchange) -> list[bytes]:
    return [part for part in exchange.parts if part.startswith(b"event:")]


@in_virtual_time
async def test_an_event_comes_at_once_and_then_each_second_until_the_server_stops() -> None:
    server = Watched()
    exchange, task = server.watch()
    await exchange.until_sent(4)
    await server.in_flight.drain(30)
    await task
    assert (exchange.status, exchange.complete) == (200, True)
    assert exchange.headers.items() >= SECURITY_HEADERS.items()
    assert exchange.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert exchange.headers["cache-control"] == "no-store"
    assert "connection" not in exchange.headers
    assert events(exchange) == [EVENT] * 3
    assert exchange.send_times[1:4] == [0, 1, 2]
    assert exchange.send_times[-1] == 2  # the stop waits for no event
    assert server.gate.asked == [("cluster:admin/opensearch/ml/stats/nodes",)]


@in_virtual_time
async def test_it_ends_when_the_browser_is_gone() -> None:
    server = Watched()
    exchange, task = server.watch()
    await exchange.until_sent(3)
    exchange.disconnect()
    await task
    asked = len(server.playground.asked)
    await asyncio.sleep(60)
    assert len(server.playground.asked) == asked


@in_virtual_time
async def test_it_ends_when_the_caller_has_lost_the_right_to_it() -> None:
    server = Watched(ForgettingGate())
    exchange, task = server.watch()
    await task
    assert len(events(exchange)) == EVENTS_OF_A_RIGHT
    assert exchange.complete


@in_virtual_time
async def test_it_ends_when_the_figures_are_not_known() -> None:
    server = Watched()
    exchange, task = server.watch()
    await exchange.until_sent(3)
    server.playground.error = Unavailable("The store does not respond")
    await task
    assert exchange.complete
    assert set(events(exchange)) == {EVENT}


@in_virtual_time
async def test_so_many_may_look_and_one_more_when_one_has_left() -> None:
    server = Watched()
    watching = [server.watch() for _ in range(MAX_OPEN)]
    for exchange, _ in watching:
        await exchange.until_sent(2)
    refused = await send_request(server.application, "GET", PATH)
    assert (refused.status, refused.headers["retry-after"]) == (429, "10")
    watching[0][0].disconnect()
    await watching[0][1]
    late, task = server.watch()
    await late.until_sent(2)
    assert late.status == 200
    await server.in_flight.drain(0)
    await asyncio.gather(task, *(task for _, task in watching[1:]))


@in_virtual_time
async def test_a_browser_that_does_not_read_is_left_after_a_while() -> None:
    server = Watched()
    exchange, task = server.watch()
    await exchange.until_sent(2)
    exchange.writable.clear()
    await task
    assert not exchange.complete
    assert 30 <= asyncio.get_running_loop().time() < 60


async def test_only_a_get_is_answered() -> None:
    server = Watched()
    for method in ("HEAD", "POST"):
        assert (await send_request(server.application, method, PATH)).status == 405
    assert (await send_request(server.application, "GET", PATH + "?x=1")).status == 400
