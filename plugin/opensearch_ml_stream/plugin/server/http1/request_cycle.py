"""One request and its response on a connection, as ASGI's `receive` and `send`."""

import asyncio
import re

import orjson
from starlette.types import Message

from opensearch_ml_stream.connectors.errors import Internal
from opensearch_ml_stream.plugin.server.http1.broken_response import break_off
from opensearch_ml_stream.plugin.server.http1.direct_cycle import STATUS_LINES, DirectCycle
from opensearch_ml_stream.plugin.server.http1.limits import NEVER
from opensearch_ml_stream.plugin.server.http1.refusals import Headers
from opensearch_ml_stream.rest_handlers.http.chunk_writer import HALF_CLOSED
from opensearch_ml_stream.rest_handlers.http.relay_extensions import (
    BROKEN,
    HTTP_TRAILERS,
    INFORMATIONAL,
    LONG_REQUEST,
    REQUEST_TRAILERS,
)

# A name without separators, and a value without control characters: a line end would begin another header.
_HEADER_LINE = re.compile(rb'[^\x00-\x20\x7f()<>@,;:\\"\[\]={}/?]*: [^\x00-\x08\x0a-\x1f\x7f]*\r\n')
_INTERNAL = Internal("Internal error; the server's log says more", type="exception")


class RequestCycle(DirectCycle):
    """A DirectCycle that an application may go through by messages, too."""

    __slots__ = ()

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
            raise RuntimeError(f"ASGI message [{message['type']}] out of turn")

    def _send_extension(self, message: Message) -> bool:
        """Do what a message of `relay_extensions` says; return whether it is one, and in its turn."""
        kind = message["type"]
        if kind == INFORMATIONAL and not self.started:
            if self.scope["http_version"] == "1.1":
                lines = b"".join([_header_line(name, value) for name, value in message["headers"]])
                self._connection.transport.write(b"%b%b\r\n" % (STATUS_LINES[message["status"]], lines))
        elif kind == LONG_REQUEST:
            if self.more_body:
                self._connection.whole_by = NEVER
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
        """Send a head; before it what is in every response, but for what it says itself, as relayed ones may."""
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
