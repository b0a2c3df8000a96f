"""One request and its response on a connection, in the ways that need no messages of ASGI."""

import asyncio
from abc import ABC, abstractmethod
from time import monotonic
from typing import Any

from starlette.types import ASGIApp, Message, Scope

from opensearch_ml_stream.plugin.logs.request_log import RequestLog
from opensearch_ml_stream.plugin.server.http1.cycle_connection import CycleConnection
from opensearch_ml_stream.plugin.server.http1.known_heads import RequestHead
from opensearch_ml_stream.plugin.server.http1.limits import HIGH_WATER_BYTES
from opensearch_ml_stream.plugin.server.http1.refusals import Headers, status_line
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory, BodyReservation
from opensearch_ml_stream.rest_handlers.http.chunk_writer import CHUNK_WRITER
from opensearch_ml_stream.rest_handlers.http.direct_exchange import DIRECT_EXCHANGE, ClientWatcher
from opensearch_ml_stream.rest_handlers.http.relay_extensions import BROKEN, HTTP_TRAILERS, INFORMATIONAL, LONG_REQUEST
from opensearch_ml_stream.rest_handlers.http.request_notes import REQUEST_NOTES, RequestNotes

STATUS_LINES = {status: status_line(status) for status in range(100, 600)}
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_WITHOUT_BODY = (204, 304)
_EXTENSIONS: dict[str, Any] = {HTTP_TRAILERS: {}, INFORMATIONAL: {}, BROKEN: {}, LONG_REQUEST: {}}

_NO_SCOPE: Scope = {"method": "", "http_version": ""}


class DirectCycle(ABC):
    """A request, whole or still on its way, and its response: a DirectExchange and a ChunkWriter.

    `more_body` while the request's body is not whole, `disconnected` when the client is gone or was refused,
    `keep_alive` if the connection may serve another request. `begun`, `first_byte` and `last_write` are seconds of
    `monotonic`. The head of a response that `_holds_head` waits for the first bytes of the body, which ASGI allows: two
    writes cost twice as much as one.
    """

    __slots__ = (
        "_body", "_chunked", "_connection", "_ends_with_trailers", "_expects_continue", "_foreign_id", "_half_closed",
        "_has_body", "_has_news", "_head", "_holds_head", "_is_received", "_left", "_reservation", "_trailers",
        "_waiter", "_watcher", "begun", "disconnected", "ended", "first_byte", "keep_alive", "last_write", "more_body",
        "notes", "scope", "started", "status",
    )  # fmt: skip

    def __init__(self, connection: CycleConnection, head: RequestHead, scope: Scope, bodies: BodyMemory) -> None:
        self.scope = scope
        self.keep_alive = head.keep_alive
        self.more_body = True
        self.disconnected = self.started = self.ended = False
        self.notes = scope[REQUEST_NOTES] = RequestNotes()
        scope["extensions"] = {**_EXTENSIONS, DIRECT_EXCHANGE: self}
        self.begun = self.last_write = monotonic()
        self.first_byte = 0.0
        self.status = 0
        self._connection = connection
        self._expects_continue = head.expects_continue
        self._foreign_id = head.foreign_id
        self._body: list[bytes] = []
        self._reservation = BodyReservation(bodies)
        self._has_news = False
        self._is_received = False  # whole, by the application
        self._half_closed = False
        self._trailers: Headers = ()  # of the request
        self._waiter: asyncio.Future[None] | None = None
        self._watcher: ClientWatcher | None = None
        self._head = b""  # that is still to be sent
        self._holds_head = False
        self._has_body = True
        self._chunked = False
        self._ends_with_trailers = False
        self._left: int | None = None  # bytes of the response's Content-Length to come

    # What the connection tells.

    def add_body(self, data: bytes) -> None:
        """Keep bytes of the body until they are received; Throttled if all bodies together are too large."""
        if self.ended or self.disconnected or self._watcher is not None:  # then nobody wants it
            return
        self._reservation.add(len(data))
        self._body.append(data)
        if self._reservation.size > HIGH_WATER_BYTES:
            self._connection.flow.pause_reading()
        self._wake()

    def end_body(self, trailers: Headers = ()) -> None:
        """Note that the request is whole."""
        self.more_body = False
        self._trailers = trailers
        self._wake()

    def disconnect(self) -> None:
        """Note that the client is gone, or shall seem so to the application."""
        self.disconnected = True
        self._body.clear()
        self._reservation.release()
        self._wake()
        if self._watcher is not None:
            self._watcher.client_disconnected()

    def half_close(self) -> None:
        """Tell the application that the client will send no more: it may have gone for good, or wait for its end."""
        self._half_closed = True
        self._wake()
        self._tell_of_half_close()

    def offer_writer(self) -> None:
        """Let the application write chunks, and hold the head for them."""
        self.scope["extensions"][CHUNK_WRITER] = self
        self._holds_head = True

    async def run(self, app: ASGIApp, log: RequestLog) -> None:
        """Run the application; a defect of it is a 500, or breaks a response off that has begun."""
        self.notes.id = self._foreign_id or next(log.ids)
        try:
            await app(self.scope, self.receive, self.send)
        except asyncio.CancelledError:  # the server's stop waits no longer
            self._connection.transport.abort()
            raise
        except Exception:
            log.exception(self, "internal error")
            await self._fail()
        else:
            if not self.ended and not self.disconnected:
                log.exception(self, "no whole response was made")
                await self._fail()
        finally:
            self._body.clear()
            self._reservation.release()
            log.ended(self)
            self.scope = _NO_SCOPE  # the scope holds this

    @abstractmethod
    async def receive(self) -> Message:
        """Receive by messages of ASGI."""

    @abstractmethod
    async def send(self, message: Message) -> None:
        """Send by messages of ASGI."""

    @abstractmethod
    async def _fail(self) -> None:
        """End the response after a defect."""

    # As a DirectExchange.

    async def start(self, lines: bytes) -> None:
        """Send the head of a stream."""
        if self._connection.flow.write_paused and not self.disconnected:
            await self.drain()
        if not self.disconnected:
            self._send_head(200, self._connection.default_lines() + lines, None)

    async def respond(self, lines: bytes, body: bytes) -> None:
        """Send a whole response."""
        if self._connection.flow.write_paused and not self.disconnected:
            await self.drain()
        if not self.disconnected:
            self._begin(200, self._connection.default_lines() + lines, len(body))
            self._end(body if self._has_body else b"")

    def take_body(self, reservation: BodyReservation) -> bytes | None:
        """Return the body, if it has come whole; see DirectExchange."""
        if self.more_body or self.disconnected or self._is_received:
            return None
        if self._connection.flow.read_paused:
            self._connection.flow.resume_reading()
        self._has_news = self._half_closed
        reservation.take_over(self._reservation)
        return self._received()

    def watch(self, watcher: ClientWatcher | None) -> None:
        """Tell the watcher of the client; see DirectExchange."""
        self._watcher = watcher
        if watcher is None:
            return
        if self.disconnected:
            watcher.client_disconnected()
            return
        self._received()
        self._invite_body()
        self._tell_of_half_close()

    def _invite_body(self) -> None:
        """Let the client send on what there is of the body, or close."""
        if self._expects_continue and self.more_body and not self.started:
            self._expects_continue = False
            self._connection.transport.write(_CONTINUE)
        if self._connection.flow.read_paused:
            self._connection.flow.resume_reading()

    # As a ChunkWriter.

    def write_chunk(self, data: bytes) -> bool:
        """Write a chunk (RFC 9112, section 7.1) without waiting; False if `drain` must be awaited before the next."""
        self.last_write = monotonic()
        connection = self._connection
        if not connection.transport.is_closing():
            head = self._take_head() if self._head else b""
            connection.transport.write(b"%b%x\r\n%b\r\n" % (head, len(data), data))
        return not connection.flow.write_paused

    async def drain(self) -> None:
        """Wait until a slow client has caught up."""
        if self._connection.flow.write_paused:
            await self._connection.flow.drain()

    def _send_head(self, status: int, lines: bytes, length: int | None, *, says_close: bool = False) -> None:
        self._begin(status, lines, length, says_close=says_close)
        if not self._holds_head:
            self._write(b"")

    def _begin(self, status: int, lines: bytes, length: int | None, *, says_close: bool = False) -> None:
        """Make the head; `length` is the Content-Length that it says, None if it says none."""
        if self.more_body:  # nobody can say whether the client will still send it, and where it ends
            self.keep_alive = False
        self._left = length
        framing = b""
        if self.scope["method"] == "HEAD" or status in _WITHOUT_BODY:
            self._has_body = False
        elif length is None:
            self._chunked = self.scope["http_version"] == "1.1"
            if self._chunked:
                framing = b"transfer-encoding: chunked\r\n"
            else:  # the end of the connection is the end of the body
                self.keep_alive = False
        if not self.keep_alive and not says_close:
            framing += b"connection: close\r\n"
        self.started = True
        self.status = status
        self.first_byte = monotonic()
        self._head = b"%b%b%b\r\n" % (STATUS_LINES[status], lines, framing)

    def _take_head(self) -> bytes:
        """Return the head that is still to be sent, and hold it no longer."""
        head, self._head = self._head, b""
        return head

    def _write(self, data: bytes) -> None:
        if self._head:
            data = self._take_head() + data
        if data:
            self._connection.transport.write(data)

    def _end(self, data: bytes) -> None:
        self._write(data)
        self.ended = True
        self._watcher = None
        self._wake()
        self._connection.response_ended()

    def _received(self) -> bytes:
        """Hand the body over as far as it has come; whoever receives it reserves it."""
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body = []
        self._reservation.release()
        self._is_received = not self.more_body
        return body

    def _tell_of_half_close(self) -> None:
        if self._half_closed and self._watcher is not None:
            self._half_closed = False
            self._watcher.client_half_closed()

    def _wake(self) -> None:
        self._has_news = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
