"""One request on a connection and its response, with ASGI's messages or, for predictions, direct calls."""

import asyncio
import re
import socket
import struct
from time import monotonic
from typing import Any, Protocol

import orjson
from starlette.types import ASGIApp, Message, Scope

from opensearch_ml_stream.connectors.errors import Internal
from opensearch_ml_stream.plugin.logs.request_log import RequestLog
from opensearch_ml_stream.plugin.server.http1.flow_control import FlowControl
from opensearch_ml_stream.plugin.server.http1.head_cache import RequestHead
from opensearch_ml_stream.plugin.server.http1.limits import HIGH_WATER_BYTES, NEVER
from opensearch_ml_stream.plugin.server.http1.refusals import Headers, status_line
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import (
    BROKEN,
    CHUNK_WRITER,
    DIRECT_EXCHANGE,
    HALF_CLOSED,
    HTTP_TRAILERS,
    INFORMATIONAL,
    LONG_REQUEST,
    REQUEST_NOTES,
    REQUEST_TRAILERS,
    ClientWatcher,
    RequestNotes,
)
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory, BodyReservation

_STATUS_LINES = {status: status_line(status) for status in range(100, 600)}
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_WITHOUT_BODY = (204, 304)
_EXTENSIONS: dict[str, Any] = {HTTP_TRAILERS: {}, INFORMATIONAL: {}, BROKEN: {}, LONG_REQUEST: {}}
_NO_SCOPE: Scope = {"method": "", "http_version": ""}
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: on, for no time

# A name without separators, and a value without control characters: a line end would begin another header.
_HEADER_LINE = re.compile(rb'[^\x00-\x20\x7f()<>@,;:\\"\[\]={}/?]*: [^\x00-\x08\x0a-\x1f\x7f]*\r\n')
_INTERNAL = Internal("Internal error; the server's log says more", type="exception")


class ClientConnection(Protocol):
    """What a RequestCycle uses of its connection."""

    transport: asyncio.Transport
    flow: FlowControl
    request_deadline: float  # when the request that is being received must be whole

    def wait_for_body(self) -> None:
        """Set the deadline of the next part of the request's body."""
        ...

    def response_headers(self) -> Headers:
        """Return the headers of every response."""
        ...

    def default_lines(self) -> bytes:
        """Return the same headers as lines of a head."""
        ...

    def response_ended(self) -> None:
        """Go on after the response that was being sent."""
        ...


class RequestCycle:
    """A request, which may not be complete yet, and its response. It is also a DirectExchange and a ChunkWriter.

    `more_body` while the request's body is not complete, `disconnected` when the client has disconnected or was
    refused, `keep_alive` if the connection may serve another request. `begun`, `first_byte` and `last_write` are times
    of `monotonic`. If it `_holds_head`, the response head is sent with the first bytes of the body, which ASGI allows:
    two writes cost twice as much as one.
    """

    __slots__ = (
        "_body", "_chunked", "_connection", "_ends_with_trailers", "_expects_continue", "_foreign_id", "_half_closed",
        "_has_body", "_has_news", "_head", "_holds_head", "_is_received", "_left", "_reservation", "_trailers",
        "_waiter", "_watcher", "begun", "disconnected", "ended", "first_byte", "keep_alive", "last_write", "more_body",
        "notes", "scope", "started", "status",
    )  # fmt: skip

    def __init__(self, connection: ClientConnection, head: RequestHead, scope: Scope, bodies: BodyMemory) -> None:
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
        self._is_received = False  # by the application, to its end
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

    # Called by the connection.

    def add_body(self, data: bytes) -> None:
        """Keep bytes of the body until they are received; Throttled if all bodies together are too large."""
        if self.ended or self.disconnected or self._watcher is not None:  # then it is not needed
            return
        self._reservation.add(len(data))
        self._body.append(data)
        if self._reservation.size > HIGH_WATER_BYTES:
            self._connection.flow.pause_reading()
        self._wake()

    def end_body(self, trailers: Headers = ()) -> None:
        """Note that the request is complete."""
        self.more_body = False
        self._trailers = trailers
        self._wake()

    def disconnect(self) -> None:
        """Note that the client has disconnected, or is to appear so to the application."""
        self.disconnected = True
        self._body.clear()
        self._reservation.release()
        self._wake()
        if self._watcher is not None:
            self._watcher.client_disconnected()

    def half_close(self) -> None:
        """Tell the application that the client sends no more; it may have disconnected or wait for the response."""
        self._half_closed = True
        self._wake()
        self._tell_of_half_close()

    def offer_writer(self) -> None:
        """Offer a ChunkWriter to the application, and send the head with the first chunk."""
        self.scope["extensions"][CHUNK_WRITER] = self
        self._holds_head = True

    async def run(self, app: ASGIApp, log: RequestLog) -> None:
        """Run the application. An unexpected error becomes a 500, or aborts a response that has started."""
        self.notes.id = self._foreign_id or next(log.ids)
        try:
            await app(self.scope, self.receive, self.send)
        except (GeneratorExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # a panic of a library in Rust is no Exception; the client waits for a response
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():  # the server stops and waits no longer
                self._connection.transport.abort()
                raise
            log.exception(self, "internal error")
            await self._fail()
        else:
            if not self.ended and not self.disconnected:
                log.exception(self, "the response was not completed")
                await self._fail()
        finally:
            self._body.clear()
            self._reservation.release()
            log.ended(self)
            self.scope = _NO_SCOPE  # the scope holds this

    # Called by ASGI applications.

    async def receive(self) -> Message:
        """Return the next part of the body; after the last one wait until the client disconnects (ASGI)."""
        if not (self.disconnected or self.ended):
            self._invite_body()
            await self._news()
        if self.disconnected or self.ended:
            return {"type": "http.disconnect"}
        if self._half_closed and self._is_received:
            self._half_closed = False
            return {"type": HALF_CLOSED}
        body = self._received()
        self._has_news = self._half_closed
        message = {"type": "http.request", "body": body, "more_body": self.more_body}
        return {**message, REQUEST_TRAILERS: self._trailers} if self._is_received and self._trailers else message

    async def send(self, message: Message) -> None:
        """Send the head of the response or a part of its body (ASGI)."""
        if self._connection.flow.write_paused and not self.disconnected:
            await self.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start" and not self.started:
            self._send_headers(message["status"], message.get("headers", ()))
            self._ends_with_trailers = message.get("trailers", False)
        elif message["type"] == "http.response.body" and self.started and not self.ended:
            self._send_body(message.get("body", b""), message.get("more_body", False))
        elif not self._send_extension(message):
            raise RuntimeError(f"ASGI message [{message['type']}] out of order")

    def _send_extension(self, message: Message) -> bool:
        """Handle a message of `relay_extensions`; return False if it is none, or out of order."""
        kind = message["type"]
        if kind == INFORMATIONAL and not self.started:
            if self.scope["http_version"] == "1.1":
                lines = b"".join([_header_line(name, value) for name, value in message["headers"]])
                self._connection.transport.write(b"%b%b\r\n" % (_STATUS_LINES[message["status"]], lines))
        elif kind == LONG_REQUEST:
            if self.more_body:
                self._connection.request_deadline = NEVER
                self._connection.wait_for_body()
        elif kind == HTTP_TRAILERS and self.started and not self.ended and self._ends_with_trailers:
            lines = b"".join([_header_line(name, value) for name, value in message["headers"]])
            self._end(b"0\r\n%b\r\n" % lines if self._chunked else b"")
        elif kind == BROKEN and self.started and not self.ended:
            self._break_off()
        else:
            return False
        return True

    def _send_headers(self, status: int, headers: Headers) -> None:
        """Send a head, with the headers of every response, except those that it has itself, as relayed ones may."""
        own = list(headers)
        names = {name for name, _ in own}
        lines: list[bytes] = []
        length: int | None = None
        says_close = False
        for name, value in [*(pair for pair in self._connection.response_headers() if pair[0] not in names), *own]:
            lines.append(_header_line(name, value))
            if name == b"content-length":
                length = int(value)
            elif name == b"connection" and value.lower() == b"close":
                self.keep_alive = False
                says_close = True
        self._send_head(status, b"".join(lines), length, says_close=says_close)

    def _send_body(self, body: bytes, more_body: bool) -> None:
        if not self._has_body:
            body = b""
        elif self._chunked:
            data = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body = data if more_body or self._ends_with_trailers else data + b"0\r\n\r\n"
        elif self._left is not None:
            self._left -= len(body)
            if self._left < 0 or (self._left and not more_body):
                raise RuntimeError("The response is longer or shorter than its Content-Length")
        if not more_body and not self._ends_with_trailers:
            self._end(body)
            return
        self._write(body)

    def _break_off(self) -> None:
        """Close the connection within a response, so that the client can tell that the response is incomplete.

        The last chunk is missing then, or bytes of the length. If only the end of the connection would end the body,
        the connection is reset.
        """
        self._write(b"")
        transport = self._connection.transport
        if self._chunked or self._left is not None:
            transport.close()
        else:
            connection = transport.get_extra_info("socket")
            if connection is not None:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            transport.abort()
        self.disconnect()

    # The methods of a DirectExchange.

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
        """Return the body, if it is complete; see DirectExchange."""
        if self.more_body or self.disconnected or self._is_received:
            return None
        if self._connection.flow.read_paused:
            self._connection.flow.resume_reading()
        self._has_news = self._half_closed
        reservation.take_over(self._reservation)
        return self._received()

    def watch(self, watcher: ClientWatcher | None) -> None:
        """Set the watcher of the client; see DirectExchange."""
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
        """Ask the client for the rest of the body, or notice that it closes."""
        if self._expects_continue and self.more_body and not self.started:
            self._expects_continue = False
            self._connection.transport.write(_CONTINUE)
        if self._connection.flow.read_paused:
            self._connection.flow.resume_reading()

    # The methods of a ChunkWriter.

    def write_chunk(self, data: bytes) -> bool:
        """Write a chunk (RFC 9112, section 7.1) without waiting; False if `drain` must be awaited before the next."""
        self.last_write = monotonic()
        connection = self._connection
        if not connection.transport.is_closing():
            head = self._take_head() if self._head else b""
            connection.transport.write(b"%b%x\r\n%b\r\n" % (head, len(data), data))
        return not connection.flow.write_paused

    async def drain(self) -> None:
        """Wait until the transport accepts more."""
        if self._connection.flow.write_paused:
            await self._connection.flow.drain()

    def _send_head(self, status: int, lines: bytes, length: int | None, *, says_close: bool = False) -> None:
        self._begin(status, lines, length, says_close=says_close)
        if not self._holds_head:
            self._write(b"")

    def _begin(self, status: int, lines: bytes, length: int | None, *, says_close: bool = False) -> None:
        """Make the head; `length` is its Content-Length, None if it has none."""
        if self.more_body:  # it is not known whether the client will send the rest, and where that ends
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
        self._head = b"%b%b%b\r\n" % (_STATUS_LINES[status], lines, framing)

    def _take_head(self) -> bytes:
        """Return the head that is to be sent, and clear it."""
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
        """Hand over the part of the body that has arrived; the receiver reserves its memory."""
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

    async def _fail(self) -> None:
        if self.ended or self.disconnected:
            return
        if self.started:
            self._break_off()
            return
        body = orjson.dumps(_INTERNAL.body())
        headers = [(b"content-type", b"application/json; charset=UTF-8"), (b"content-length", b"%d" % len(body))]
        await self.send({"type": "http.response.start", "status": 500, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    async def _news(self) -> None:
        if not self._has_news:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._has_news = False


def _header_line(name: bytes, value: bytes) -> bytes:
    line = b"%b: %b\r\n" % (name, value)
    if not _HEADER_LINE.fullmatch(line):
        raise RuntimeError("A response header has a name or value that HTTP does not allow")
    return line


def _is_cancelled() -> bool:
    """Return whether the running task is to end; else a CancelledError is that of another, which it has awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
