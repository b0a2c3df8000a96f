"""`/_ui/statistics`: what the server does now, sent each second for as long as somebody looks."""

import asyncio
from collections.abc import AsyncIterator

import orjson
from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import MLStreamError, Throttled
from opensearch_ml_stream.extensions.playground.service.live_figures import LiveFigures
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.exception_handlers import method_not_allowed
from opensearch_ml_stream.rest_handlers.http.host_and_origin import with_security_headers
from opensearch_ml_stream.rest_handlers.http.requests import check_query, query
from opensearch_ml_stream.rest_handlers.http.responses import echoed_headers

MAX_OPEN = 100  # in a worker
INTERVAL_SECONDS = 1.0
EVENTS_OF_A_RIGHT = 10  # after so many it is asked again whether the caller may see them
MAX_SEND_SECONDS = 30.0  # for a browser that does not read


class LiveStatisticsEndpoint:
    """The ASGI endpoint. Every response ends when `stopping` is set, and when its caller loses the right to it.

    sse-starlette patches `uvicorn.Server.handle_exit` when it is imported. The server of this project replaces that
    method's use and says itself when it stops, so the patch neither helps nor harms.
    """

    def __init__(self, statistics: LiveFigures, gate: Gate, stopping: asyncio.Event) -> None:
        self._statistics = statistics
        self._gate = gate
        self._stopping = stopping
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request with the stream."""
        request = Request(scope, receive)
        if request.method != "GET":
            await method_not_allowed(request, ["GET"])(scope, receive, send)
            return
        caller = await self._gate.admit(scope, actions.STATS_GET)
        check_query(scope, query(scope))
        if self._open >= MAX_OPEN:
            raise Throttled(
                f"{MAX_OPEN} clients look at the statistics of this worker already; try again later", retry_after="10"
            )
        self._open += 1
        try:
            await self._respond(request, caller, send)
        except* SendTimeoutError:  # in a group before sse-starlette 3.4
            pass  # to a browser that does not read; the connection is closed, as the response is not complete
        finally:
            self._open -= 1

    async def _respond(self, request: Request, caller: Caller, send: Send) -> None:
        response = EventSourceResponse(
            self._events(request.scope, caller),
            headers=echoed_headers(request),
            sep="\n",
            send_timeout=MAX_SEND_SECONDS,
        )
        del response.headers["connection"]  # the connection is the server's
        await with_security_headers(request.scope, response)(request.scope, request.receive, send)

    async def _events(self, scope: Scope, caller: Caller) -> AsyncIterator[ServerSentEvent]:
        number = 0
        while not self._stopping.is_set():
            try:
                if number and number % EVENTS_OF_A_RIGHT == 0:
                    caller = await self._gate.admit(scope, actions.STATS_GET)
                current = await self._statistics.current(caller)
            except MLStreamError:
                return  # the browser asks again, and is told why
            yield ServerSentEvent(orjson.dumps(current).decode(), event="statistics", sep="\n")
            number += 1
            await self._wait()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(INTERVAL_SECONDS):
                await self._stopping.wait()
        except TimeoutError:
            return
