"""The life of a response: started, written, ended once; cancelled when the client disconnects or the server stops.

One task makes the response. When the client disconnects, the task is cancelled, and with it the provider call. A stream
has a timer: it commits to 200 when the provider is slow to begin, and sends heartbeats while the provider is silent.
Neither costs anything per chunk.
"""

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import Any, Protocol

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import Internal, MLStreamError, Throttled, Unavailable
from opensearch_ml_stream.connectors.wire_format import WireFormat
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import (
    CHUNK_WRITER,
    DIRECT_EXCHANGE,
    HALF_CLOSED,
    HEAD_MEMO,
    REQUEST_NOTES,
    ChunkWriter,
    ClientWatcher,
    DirectExchange,
    RequestNotes,
)
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory, BodyReservation
from opensearch_ml_stream.rest_handlers.http.host_and_origin import (
    FOR_OWN_PAGES,
    SECURITY_HEADERS,
    Headers,
    security_headers,
)
from opensearch_ml_stream.rest_handlers.http.responses import encoded_json_response, error_response, json_response

_STREAM_HEADERS: Headers = ((b"cache-control", b"no-cache, no-transform"), (b"x-accel-buffering", b"no"))
_OPAQUE_ID = "opaque_id_line"  # of the memo of a head


def _lines(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])


_STREAM_LINES = _lines(_STREAM_HEADERS)
_LINES_FOR_OWN_PAGES = _lines(FOR_OWN_PAGES)


def stream_lines(scope: Scope, content_type: str) -> bytes:
    """Return the lines of a stream's head but `request_id_line`: the same for requests with equal heads."""
    return b"content-type: %b\r\n%b%b%b" % (
        content_type.encode(),
        _STREAM_LINES,
        _security_lines(scope),
        _opaque_id_line(scope),
    )


def stream_headers(
    scope: Scope, content_type: str, further: Headers, notes: RequestNotes | None
) -> list[tuple[bytes, bytes]]:
    """Return the same as headers, with further ones among them."""
    headers = [(b"content-type", content_type.encode()), *_STREAM_HEADERS, *further, *security_headers(scope)]
    headers += [pair for pair in scope["headers"] if pair[0] == b"x-opaque-id"][:1]
    if notes is not None:
        headers.append((b"x-request-id", notes.id.encode()))
    return headers


def json_lines(scope: Scope, length: int, notes: RequestNotes | None) -> bytes:
    """Return the lines of the head of a body that is JSON."""
    return (
        b"cache-control: no-store\r\n%b%bcontent-length: %d\r\ncontent-type: application/json; charset=UTF-8\r\n%b"
        % (
            _opaque_id_line(scope),
            _request_id_line(notes),
            length,
            _security_lines(scope),
        )
    )


def _opaque_id_line(scope: Scope) -> bytes:
    """Return the request's `X-Opaque-Id`, the first if there are several; the server has checked what is in it."""
    memo = scope.get(HEAD_MEMO, {})
    known: bytes | None = memo.get(_OPAQUE_ID)
    if known is not None:
        return known
    values = [value for name, value in scope["headers"] if name == b"x-opaque-id"]
    line = b"x-opaque-id: %b\r\n" % values[0] if values else b""
    memo[_OPAQUE_ID] = line
    return line


def _request_id_line(notes: RequestNotes | None) -> bytes:
    return b"" if notes is None else b"x-request-id: %b\r\n" % notes.id.encode()


def _security_lines(scope: Scope) -> bytes:
    headers: Headers | None = scope.get(SECURITY_HEADERS)
    return _LINES_FOR_OWN_PAGES if headers is None else _lines(headers)


async def watch_messages(receive: Receive, watcher: ClientWatcher) -> None:
    """Tell the watcher of the client until it has disconnected. The body must have been received."""
    while (kind := (await receive())["type"]) != "http.disconnect":
        if kind == HALF_CLOSED:
            watcher.client_half_closed()
    watcher.client_disconnected()


def start_watch(receive: Receive, watcher: ClientWatcher) -> asyncio.Task[None]:
    """Watch in a task, which whoever starts it cancels."""
    return asyncio.create_task(watch_messages(receive, watcher))


@dataclass(frozen=True, slots=True)
class ResponseLimits:
    """Limits of requests and responses: the body sizes in bytes, the times in seconds, `max_streams` a number."""

    max_body_size: int
    first_event_wait: float
    heartbeat: float
    max_total_body_size: int = 256 * 1024 * 1024
    max_streams: int = 5_000


class Interruptible(Protocol):
    """A response in flight, of whatever port."""

    def interrupt(self, reason: MLStreamError) -> None:
        """End the response with an error."""
        ...


class InFlightResponses:
    """The responses in flight in this worker; a stop lets them finish for a while, then ends each with an error."""

    def __init__(self, limits: ResponseLimits) -> None:
        self.limits = limits
        self.bodies = BodyMemory(limits.max_body_size, limits.max_total_body_size)
        self._in_flight: set[Interruptible] = set()
        self.stopping = asyncio.Event()  # set when the server begins to stop
        self._all_done = asyncio.Event()
        self._all_done.set()

    @cached_property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that runs them, kept because asking asyncio for it is a system call."""
        return asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self._in_flight)

    def check_room(self) -> None:
        """Raise Throttled if there are as many responses as there may be; no provider has been called yet."""
        if len(self._in_flight) >= self.limits.max_streams:
            raise Throttled(
                f"{self.limits.max_streams} responses are in flight in this worker (setting "
                "opensearch_ml_stream.max_streams); send the request again",
                type="rejected_execution_exception",
                retry_after="1",
            )

    def add(self, response: Interruptible) -> None:
        """Count a response that has begun."""
        self._in_flight.add(response)
        self._all_done.clear()

    def remove(self, response: Interruptible) -> None:
        """Forget a response that has ended."""
        self._in_flight.discard(response)
        if not self._in_flight:
            self._all_done.set()

    async def drain(self, grace: float, late: float = 0.0) -> None:
        """Wait up to `grace` seconds for the responses in flight, then interrupt the rest.

        For the first `late` of these seconds requests may still come.
        """
        self.stopping.set()
        try:
            async with asyncio.timeout(grace):
                if late:
                    await asyncio.sleep(late)
                await self._all_done.wait()
        except TimeoutError:
            self.interrupt_all()

    def interrupt_all(self) -> None:
        """End every response with an error (503)."""
        for response in list(self._in_flight):
            response.interrupt(Unavailable("The server is stopping; the response is incomplete"))


class MessageWriter:
    """ChunkWriter of any ASGI server: what is written is held until `drain` sends it as `http.response.body`."""

    __slots__ = ("_held", "_send", "last_write")

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held = b""
        self.last_write = monotonic()

    def write_chunk(self, data: bytes) -> bool:
        """Hold the chunk and return False."""
        self.last_write = monotonic()
        self._held += data
        return False

    async def drain(self) -> None:
        """Send what is held, if anything."""
        held, self._held = self._held, b""
        if held:
            await self._send({"type": "http.response.body", "body": held, "more_body": True})


class InFlightResponse:
    """One response to one client. `wire` is its stream format, None for a response that is one JSON object.

    `become_stream` turns it into a stream later. `body` is what the request has reserved; it is released when the
    provider has responded, or nobody waits for that. `direct` is the server's DirectExchange, if it has one.
    """

    __slots__ = (
        "_begun", "_body", "_ended", "_headers", "_in_flight", "_interrupted_by", "_keeping_alive", "_receive",
        "_scope", "_send", "_task", "_timer", "direct", "notes", "started", "wire", "writer",
    )  # fmt: skip

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        in_flight: InFlightResponses,
        body: BodyReservation,
        wire: WireFormat | None = None,
    ) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._in_flight = in_flight
        self._body = body
        self.wire = wire
        self._headers: Headers = ()
        self._ended = False
        self._begun = 0.0  # seconds of `monotonic`
        self._interrupted_by: ClientDisconnect | MLStreamError | None = None
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._keeping_alive: asyncio.Task[None] | None = None
        offered = scope.get("extensions", {})
        self.direct: DirectExchange | None = offered.get(DIRECT_EXCHANGE)
        self.started = False
        self.notes: RequestNotes | None = scope.get(REQUEST_NOTES)
        self.writer: ChunkWriter = offered.get(CHUNK_WRITER) or MessageWriter(send)  # between `start` and `end`

    async def run(self, work: Awaitable[None]) -> None:
        """Run `work` while the client is watched; return when the response has ended or nobody waits for it."""
        self._in_flight.add(self)
        self._begun = monotonic()
        task = self._task = asyncio.current_task(self._in_flight.loop)
        watch = None if self.direct is not None else start_watch(self._receive, self)
        if self.direct is not None:
            self.direct.watch(self)
        if self.wire is not None:
            self._look_after(self._in_flight.limits.first_event_wait)
        try:
            await work
        except asyncio.CancelledError:
            if self._interrupted_by is None or task is None:
                raise
            task.uncancel()
            if isinstance(self._interrupted_by, MLStreamError):
                await self.fail(self._interrupted_by)
        finally:
            self._stop_watching(watch)
            self._in_flight.remove(self)
            self._body.release()
            if not self._ended and self._interrupted_by is None:  # a defect of ours, on its way to the log
                await self.fail(Internal("Internal error; the server's log says more", type="exception"))

    def interrupt(self, reason: ClientDisconnect | MLStreamError) -> None:
        """End the response: silently if the client has disconnected, else with `reason`."""
        if self._interrupted_by is None and self._task is not None and not self._ended:
            self._interrupted_by = reason
            self._task.cancel()

    def become_stream(self, wire: WireFormat, headers: Headers) -> None:
        """Note the format of a response that has not begun, and further headers of its head."""
        self.wire = wire
        self._headers = headers
        self._look_after(self._in_flight.limits.first_event_wait - (monotonic() - self._begun))

    async def start(self, wire: WireFormat) -> None:
        """Begin the stream that the provider has begun."""
        self._body.release()  # sent, and let go of
        if not self.started:
            await self._send_head(wire)

    async def _send_head(self, wire: WireFormat) -> None:
        """Commit to 200."""
        self.started = True
        if self.direct is not None and not self._headers:
            memo: dict[Any, bytes] = self._scope.get(HEAD_MEMO, {})
            lines = memo.get(wire.content_type)
            if lines is None:
                lines = memo[wire.content_type] = stream_lines(self._scope, wire.content_type)
            if self.notes is not None:
                lines += b"x-request-id: %b\r\n" % self.notes.id.encode()
            await self.direct.start(lines)
            return
        headers = stream_headers(self._scope, wire.content_type, self._headers, self.notes)
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def end(self, data: bytes) -> None:
        """Send the last objects of a started stream, the terminal one among them."""
        self._ended = True
        await self.writer.drain()  # an interrupt may have come before a chunk was sent
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def send_whole(self, body: Any) -> None:
        """Send the response that is one JSON object: in the form that the query asks for, or bytes as they are."""
        if not isinstance(body, bytes):
            await self.send(json_response(Request(self._scope), body))
        elif self.direct is None:
            await self.send(encoded_json_response(Request(self._scope), body))
        else:
            self._ended = True
            await self.direct.respond(json_lines(self._scope, len(body), self.notes), body)

    async def send(self, response: Response) -> None:
        """Send a whole response."""
        self._ended = True
        await response(self._scope, self._receive, self._send)

    async def fail(self, error: MLStreamError, last: bytes = b"") -> None:
        """Send the error as a status, or as the terminal object of a stream that has started; nothing after the end.

        `last` are the stream's last objects before it.
        """
        if self._ended:
            return
        if self.started and self.wire is not None:
            if self.notes is not None:
                self.notes.error = error
            await self.end(last + self.wire.error(error))
        else:
            await self.send(error_response(Request(self._scope), error))

    # As a ClientWatcher.

    def client_disconnected(self) -> None:
        """Cancel the response."""
        self.interrupt(ClientDisconnect())

    def client_half_closed(self) -> None:
        """Send a heartbeat to a client that waits for a stream; the write shows whether it is gone."""
        if self.started and self.wire is not None and not (self._ended or self._is_keeping_alive()):
            self._keep_alive_beside(self._send_heartbeat(self.wire))

    def _stop_watching(self, watch: asyncio.Task[None] | None) -> None:
        if self.direct is not None:
            self.direct.watch(None)
        for one in (self._timer, self._keeping_alive, watch):
            if one is not None:
                one.cancel()

    def _look_after(self, seconds: float) -> None:
        self._timer = self._in_flight.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        """See whether the stream has been silent for so long that its client must hear something."""
        if self._ended or self.wire is None:
            return
        pause = self._in_flight.limits.heartbeat
        silent = monotonic() - self.writer.last_write
        if self._is_keeping_alive():
            self._look_after(pause)
        elif self.started and silent < pause:
            self._look_after(pause - silent)
        else:
            self._keep_alive_beside(self._keep_alive(self.wire))

    def _keep_alive_beside(self, work: Coroutine[Any, Any, None]) -> None:
        self._keeping_alive = asyncio.create_task(work)
        self._keeping_alive.add_done_callback(self._kept_alive)

    def _kept_alive(self, task: asyncio.Task[None]) -> None:
        """Report a failed heartbeat to the loop, which logs it, and try again when the next one is due."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        self._in_flight.loop.call_exception_handler({"message": "a heartbeat failed", "exception": error})
        if self._timer is not None:
            self._timer.cancel()
        if not self._ended:
            self._look_after(self._in_flight.limits.heartbeat)

    async def _keep_alive(self, wire: WireFormat) -> None:
        """Commit to 200 if that is still to be done, and send a heartbeat."""
        if not self.started:
            await self._send_head(wire)
        await self._send_heartbeat(wire)
        self._keeping_alive = None
        self._look()

    def _is_keeping_alive(self) -> bool:
        return self._keeping_alive is not None and not self._keeping_alive.done()

    async def _send_heartbeat(self, wire: WireFormat) -> None:
        if not self._ended:
            self.writer.write_chunk(wire.heartbeat)
            await self.writer.drain()


async def send_prediction(response: InFlightResponse, prediction: Awaitable[Mapping[str, Any] | bytes]) -> None:
    """Send the prediction, an object or compact JSON, or its error, as the whole response."""
    try:
        body = await prediction
    except MLStreamError as error:
        await response.fail(error)
    else:
        await response.send_whole(body)
