"""One request and its response on a connection, as ASGI's `receive` and `send`, and with a ChunkWriter beside them."""

import asyncio
import re
from time import monotonic

import orjson
from starlette.types import ASGIApp, Message, Scope

from opensearch_ml_stream.connectors.errors import Internal
from opensearch_ml_stream.plugin.logs.request_log import RequestLog
from opensearch_ml_stream.plugin.server.http1.broken_response import break_off
from opensearch_ml_stream.plugin.server.http1.cycle_connection import CycleConnection
from opensearch_ml_stream.plugin.server.http1.flow_control import ChunkedWriter
from opensearch_ml_stream.plugin.server.http1.limits import HIGH_WATER_BYTES, NEVER
from opensearch_ml_stream.plugin.server.http1.refusals import Headers, status_line
from opensearch_ml_stream.rest_handlers.http.body_budget import BodyBudget, BodyReservation
from opensearch_ml_stream.rest_handlers.http.chunk_writer import HALF_CLOSED
from opensearch_ml_stream.rest_handlers.http.relay_extensions import (
    BROKEN,
    HTTP_TRAILERS,
    INFORMATIONAL,
    LONG_REQUEST,
    REQUEST_TRAILERS,
)
from opensearch_ml_stream.rest_handlers.http.request_notes import REQUEST_NOTES, RequestNotes
from opensearch_ml_stream.rest_handlers.http.requests import foreign_id

# A name without separators, and a value without control characters: a line end would begin another header.
_HEADER_LINE = re.compile(rb'[^\x00-\x20\x7f()<>@,;:\\"\[\]={}/?]*: [^\x00-\x08\x0a-\x1f\x7f]*\r\n')
_STATUS_LINES = {status: status_line(status) for status in range(100, 600)}
_INTERNAL = Internal("Internal error; the server's log says more", type="exception")


class RequestCycle:
    """A request, whole or still on its way, and its response.

    `more_body` while the request's body is not whole, `disconnected` when the client is gone or was refused,
    `keep_alive` if the connection may serve another request. `begun` and `first_byte` are seconds of `monotonic`.
    `writer` is what writes chunks of the body, None if nothing may. It holds the head until the first bytes of the
    body, which ASGI allows: two writes cost twice as much as one.
    """

    __slots__ = (
        "_body", "_chunked", "_connection", "_ends_with_trailers", "_expects_continue", "_half_closed", "_has_body",
        "_has_news", "_is_received", "_left", "_reservation", "_trailers", "_waiter", "begun", "disconnected", "ended",
        "first_byte", "keep_alive", "more_body", "notes", "scope", "started", "status", "writer",
    )  # fmt: skip

    def __init__(
        self, connection: CycleConnection, scope: Scope, keep_alive: bool, expects_continue: bool, bodies: BodyBudget
    ) -> None:
        self.scope = scope
        self.keep_alive = keep_alive
        self.disconnected = False
        self.more_body = True
        self.started = False
        self.ended = False
        self.notes = scope[REQUEST_NOTES] = RequestNotes()
        self.begun = monotonic()
        self.first_byte = 0.0
        self.status = 0
        self._connection = connection
        self._expects_continue = expects_continue
        self._body: list[bytes] = []
        self._reservation = BodyReservation(bodies)
        self._has_news = False
        self._is_received = False  # whole, by the application
        self._half_closed = False
        self._waiter: asyncio.Future[None] | None = None
        self._has_body = True
        self._chunked = False
        self._ends_with_trailers = False
        self._trailers: Headers = ()  # of the request
        self._left: int | None = None  # bytes of the response's Content-Length to come
        self.writer: ChunkedWriter | None = None

    # What the connection tells.

    def add_body(self, data: bytes) -> None:
        """Keep bytes of the body until they are received; Throttled if all bodies together are too large."""
        if self.ended or self.disconnected:
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

    def half_close(self) -> None:
        """Tell the application that the client will send no more: it may have gone for good, or wait for its end."""
        self._half_closed = True
        self._wake()

    # What the application calls.

    async def run(self, app: ASGIApp, log: RequestLog) -> None:
        """Run the application; a defect of it is a 500, or breaks a response off that has begun."""
        self.notes.id = foreign_id(self.scope) or next(log.ids)
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

    async def receive(self) -> Message:
        """Return the next part of the body; after the last one wait until the client disconnects (ASGI)."""
        if self._expects_continue and self.more_body and not self.started and not self.disconnected:
            self._expects_continue = False
            self._connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not (self.disconnected or self.ended):
            self._connection.flow.resume_reading()
            await self._news()
        if self.disconnected or self.ended:
            return {"type": "http.disconnect"}
        if self._half_closed and self._is_received:
            self._half_closed = False
            return {"type": HALF_CLOSED}
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body = []
        self._reservation.release()  # whoever receives it reserves it
        self._is_received = not self.more_body
        self._has_news = self._half_closed
        message = {"type": "http.request", "body": body, "more_body": self.more_body}
        return {**message, REQUEST_TRAILERS: self._trailers} if self._is_received and self._trailers else message

    async def send(self, message: Message) -> None:
        """Send the head of the response or a part of its body (ASGI)."""
        flow = self._connection.flow
        if flow.write_paused and not self.disconnected:
            await flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start" and not self.started:
            self._send_head(message["status"], message.get("headers", ()))
            self._ends_with_trailers = message.get("trailers", False)
        elif message["type"] == "http.response.body" and self.started and not self.ended:
            self._send_body(message.get("body", b""), message.get("more_body", False))
        elif not self._send_extension(message):
            raise RuntimeError(f"ASGI message [{message['type']}] out of turn")

    def _send_extension(self, message: Message) -> bool:
        """Do what a message of `relay_extensions` says; return whether it is one, and in its turn."""
        kind = message["type"]
        if kind == INFORMATIONAL and not self.started:
            if self.scope["http_version"] == "1.1":
                lines = [_STATUS_LINES[message["status"]], *_lines(message["headers"]), b"\r\n"]
                self._connection.transport.write(b"".join(lines))
        elif kind == LONG_REQUEST:
            if self.more_body:
                self._connection.whole_by = NEVER
                self._connection.wait_for_body()
        elif kind == HTTP_TRAILERS and self.started and not self.ended and self._ends_with_trailers:
            self._end(b"".join([b"0\r\n", *_lines(message["headers"]), b"\r\n"]) if self._chunked else b"")
        elif kind == BROKEN and self.started and not self.ended:
            self._break_off()
        else:
            return False
        return True

    def _send_head(self, status: int, headers: Headers) -> None:
        if self.more_body:  # nobody can say whether the client will still send it, and where it ends
            self.keep_alive = False
        self._left = None
        lines = [_STATUS_LINES[status]]
        says_close = False
        for name, value in self._with_defaults(headers):
            line = _header_line(name, value)
            if name == b"content-length":
                self._left = int(value)
            elif name == b"connection" and value.lower() == b"close":
                self.keep_alive = False
                says_close = True
            lines.append(line)
        if self.scope["method"] == "HEAD" or status in (204, 304):
            self._has_body = False
        elif self._left is None:
            self._chunked = self.scope["http_version"] == "1.1"
            if self._chunked:
                lines.append(b"transfer-encoding: chunked\r\n")
            else:  # the end of the connection is the end of the body
                self.keep_alive = False
        if not self.keep_alive and not says_close:
            lines.append(b"connection: close\r\n")
        lines.append(b"\r\n")
        self.started = True
        self.status = status
        self.first_byte = monotonic()
        self._write_head(b"".join(lines))

    def _with_defaults(self, headers: Headers) -> Headers:
        """Return the headers, and before them those of every response that they do not hold, as relayed ones may."""
        own = list(headers)
        names = {name for name, _ in own}
        return [*(pair for pair in self._connection.response_headers() if pair[0] not in names), *own]

    def _write_head(self, head: bytes) -> None:
        if self.writer is None:
            self._connection.transport.write(head)
        else:
            self.writer.head = head

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

    def _write(self, data: bytes) -> None:
        if self.writer is not None and self.writer.head:
            data = self.writer.take_head() + data
        if data:
            self._connection.transport.write(data)

    def _end(self, data: bytes) -> None:
        self._write(data)
        self.ended = True
        self._wake()
        self._connection.response_ended()

    def _break_off(self) -> None:
        """Close the connection inside a response."""
        self._write(b"")
        break_off(self._connection.transport, is_framed=self._chunked or self._left is not None)
        self.disconnect()

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

    def _wake(self) -> None:
        self._has_news = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

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


def _lines(headers: Headers) -> list[bytes]:
    return [_header_line(name, value) for name, value in headers]
