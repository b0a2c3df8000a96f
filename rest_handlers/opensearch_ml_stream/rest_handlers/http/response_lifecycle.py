"""InFlightResponses on their way to clients: started, written, ended once; given up when the client leaves or the server stops.

One task makes the answer. A second one watches the client: it commits to 200 when the provider is slow to begin,
sends heartbeats while the provider is silent, and ends the first task, and with it the call of the provider, when the
client goes. Neither costs anything per chunk.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import Internal, MLStreamError, Unavailable
from opensearch_ml_stream.connectors.wire_format import WireFormat
from opensearch_ml_stream.rest_handlers.http.chunk_writer import chunk_writer
from opensearch_ml_stream.rest_handlers.http.requests import ClientDisconnect
from opensearch_ml_stream.rest_handlers.http.responses import error_response, json_response


@dataclass(frozen=True, slots=True)
class ResponseLimits:
    """Sizes in bytes, times in seconds."""

    max_body_size: int
    first_event_wait: float
    heartbeat: float


class InFlightResponses:
    """The answers under way in this worker; a stop lets them finish for a while, then ends each with an error."""

    def __init__(self, limits: Callable[[], ResponseLimits]) -> None:
        self.limits = limits
        self._under_way: set[InFlightResponse] = set()
        self._none = asyncio.Event()
        self._none.set()

    def __len__(self) -> int:
        return len(self._under_way)

    def began(self, answer: "InFlightResponse") -> None:
        self._under_way.add(answer)
        self._none.clear()

    def ended(self, answer: "InFlightResponse") -> None:
        self._under_way.discard(answer)
        if not self._under_way:
            self._none.set()

    async def drain(self, grace: float) -> None:
        """Waits up to `grace` seconds for the answers under way, then interrupts the rest."""
        try:
            async with asyncio.timeout(grace):
                await self._none.wait()
        except TimeoutError:
            self.interrupt_all()

    def interrupt_all(self) -> None:
        """Ends every answer with an error."""
        for answer in list(self._under_way):
            answer.interrupt(Unavailable("The server is stopping; the answer is incomplete"))


class InFlightResponse:
    """One answer to one client. `wire` is None for an answer that is one JSON object."""

    __slots__ = (
        "_answers", "_ended", "_interrupted_by", "_receive", "_request_scope", "_send", "_task", "_wire", "started",
        "writer",
    )  # fmt: skip

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, answers: InFlightResponses, wire: WireFormat | None = None
    ) -> None:
        self._request_scope = scope
        self._receive = receive
        self._send = send
        self._answers = answers
        self._wire = wire
        self._ended = False
        self._interrupted_by: ClientDisconnect | MLStreamError | None = None
        self._task: asyncio.Task[Any] | None = None
        self.started = False
        self.writer = chunk_writer(scope, send)  # for the chunks between `start` and `end`

    async def run(self, work: Awaitable[None]) -> None:
        """Runs `work` beside the watch over the client; returns when the answer has ended or the client left."""
        self._answers.began(self)
        task = self._task = asyncio.current_task()
        watch = asyncio.create_task(self._watch())
        try:
            await work
        except asyncio.CancelledError:
            if self._interrupted_by is None or task is None:
                raise
            task.uncancel()
            if isinstance(self._interrupted_by, MLStreamError):
                await self.fail(self._interrupted_by)
        finally:
            watch.cancel()
            self._answers.ended(self)
            if not self._ended and self._interrupted_by is None:  # a defect of ours, on its way to the log
                await self.fail(Internal("Internal error; the server's log says more", type="exception"))
            self._ended = True

    def interrupt(self, reason: ClientDisconnect | MLStreamError) -> None:
        """Ends the answer: silently if the client left, else with `reason`."""
        if self._interrupted_by is None and self._task is not None and not self._ended:
            self._interrupted_by = reason
            self._task.cancel()

    async def start(self, wire: WireFormat) -> None:
        """Commits to 200, once."""
        if self.started:
            return
        self.started = True
        headers = [
            (b"content-type", wire.content_type.encode()),
            (b"cache-control", b"no-cache, no-transform"),
            (b"x-accel-buffering", b"no"),
        ]
        headers += [pair for pair in self._request_scope["headers"] if pair[0] == b"x-opaque-id"][:1]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def end(self, data: bytes) -> None:
        """The last objects of a started stream, the terminal one among them."""
        self._ended = True
        await self.writer.drain()  # an interrupt may have come before a chunk was sent
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def whole(self, body: Any) -> None:
        """The answer that is one JSON object."""
        self._ended = True
        await json_response(Request(self._request_scope), body)(self._request_scope, self._receive, self._send)

    async def fail(self, error: MLStreamError) -> None:
        """The error as a status, or as the terminal object of a stream that has started."""
        if self.started and self._wire is not None:
            await self.end(self._wire.error(error))
        else:
            self._ended = True
            response = error_response(Request(self._request_scope), error)
            await response(self._request_scope, self._receive, self._send)

    async def _watch(self) -> None:
        wait = self._answers.limits().first_event_wait
        while True:
            try:
                async with asyncio.timeout(wait):
                    message = await self._receive()
            except TimeoutError:
                wait = await self._beat()
            else:
                if message["type"] == "http.disconnect":
                    self.interrupt(ClientDisconnect())
                    return

    async def _beat(self) -> float:
        """Commits to 200, or sends a heartbeat if one is due; returns the seconds until the next look."""
        wire = self._wire
        pause = self._answers.limits().heartbeat
        if wire is None or self._ended:
            return pause
        if not self.started:
            await self.start(wire)
            await self._heartbeat(wire)
        silent = monotonic() - self.writer.last_write
        if silent >= pause:
            await self._heartbeat(wire)
            return pause
        return pause - silent

    async def _heartbeat(self, wire: WireFormat) -> None:
        self.writer.last_write = monotonic()
        await self._send({"type": "http.response.body", "body": wire.heartbeat, "more_body": True})
