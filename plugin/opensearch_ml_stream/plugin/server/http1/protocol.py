"""The server's HTTP protocol: a client's connection, with limits on its sizes and times.

uvicorn runs it through its option `http`. The client's bytes are counted while they arrive, so that at most one read
(256 KiB) exceeds a limit. Deadlines are checked once a second (`check_deadlines`) instead of by timers.
"""

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Scope
from uvicorn.server import ServerState

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.plugin.logs.request_log import RequestLog
from opensearch_ml_stream.plugin.server.http1.flow_control import FlowControl, WriteStall
from opensearch_ml_stream.plugin.server.http1.head_cache import HeadCache, RequestHead, parts_of_whole_request
from opensearch_ml_stream.plugin.server.http1.limits import LATE_REQUEST_SECONDS, MAX_PIPELINED, NEVER, ConnectionLimits
from opensearch_ml_stream.plugin.server.http1.refusals import Headers, body_timeout, head_timeout, refusal
from opensearch_ml_stream.plugin.server.http1.request_cycle import RequestCycle
from opensearch_ml_stream.plugin.server.http1.request_parser import RequestParser
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory

_PROBE_SECONDS = 0.1  # for a response that is about to start, and then for the client's reset
_MAX_CHECKS = 5  # seconds after which an HTTP/1.0 client that closed its side is taken for disconnected


class DefaultLines:
    """The headers of every response, and the `lines` of a head that they were made into."""

    __slots__ = ("headers", "lines")

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.lines = b""


@dataclass(frozen=True, slots=True)
class SharedState:
    """What all connections of a worker share; `state` holds the connections and tasks, `warn` logs a warning."""

    app: ASGIApp
    state: ServerState
    limits: ConnectionLimits
    bodies: BodyMemory
    warn: Callable[[str], None]
    log: RequestLog = field(default_factory=RequestLog)
    heads: HeadCache = field(default_factory=HeadCache)
    default_lines: DefaultLines = field(default_factory=DefaultLines)

    def admit(self, connection: asyncio.Protocol, transport: asyncio.Transport) -> bool:
        """Add a new connection to the open ones; if there are too many, close it and return False."""
        connections: set[Any] = self.state.connections
        connections.add(connection)
        most = self.limits.max_connections
        if len(connections) <= most:
            return True
        self.warn(f"{most} clients are connected, which is the limit; new connections are closed")
        transport.abort()
        return False

    def forget(self, connection: asyncio.Protocol) -> None:
        """Remove a connection from the open ones."""
        connections: set[Any] = self.state.connections
        connections.discard(connection)


@dataclass(frozen=True, slots=True)
class SecureChannel:
    """`extension` is ASGI's TLS extension, `tcp` the transport to which TLS writes."""

    extension: Mapping[str, Any]
    tcp: asyncio.Transport

    def mark(self, scope: Scope) -> None:
        """Describe the TLS connection in a request's scope."""
        scope["scheme"] = "https"
        scope["extensions"]["tls"] = self.extension


class StreamingProtocol(asyncio.Protocol):
    """One connection: its requests, each a RequestCycle, and their responses in the same order."""

    __slots__ = (
        "_active",
        "_client",
        "_deadline",
        "_half_closed",
        "_has_served",
        "_ignores_input",
        "_is_stopping",
        "_lingering",
        "_loop",
        "_parser",
        "_queue",
        "_reading",
        "_refusal",
        "_server",
        "_shared",
        "_write_stall",
        "flow",
        "request_deadline",
        "secure_channel",
        "transport",
    )  # fmt: skip

    def __init__(self, shared: SharedState, loop: asyncio.AbstractEventLoop) -> None:
        self._shared = shared
        self._loop = loop
        self._parser = RequestParser(self, shared.heads)
        self._active: RequestCycle | None = None  # its response is being sent
        self._reading: RequestCycle | None = None  # its request is being received
        self._queue: tuple[RequestCycle, ...] = ()  # wait for the active one; a deque would take 760 bytes
        self._refusal: MLStreamError | None = None  # to be sent when all of these have ended
        self._ignores_input = self._lingering = False  # ignores all further bytes
        self._has_served = self._is_stopping = False
        self._half_closed: _HalfClosedClient | None = None
        self._deadline = self.request_deadline = NEVER
        self._write_stall = WriteStall()
        self.secure_channel: SecureChannel | None = None  # if the connection uses TLS

    # Called by the transport.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request, unless there are too many connections."""
        self.transport = transport
        self.flow = FlowControl(transport)
        self._client = transport.get_extra_info("peername")
        self._server = transport.get_extra_info("sockname")
        self._deadline = self._loop.time() + self._shared.limits.head_seconds
        self._ignores_input = not self._shared.admit(self, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the responses of a client that has disconnected."""
        self._shared.forget(self)
        for cycle in (self._active, self._reading, *self._queue):
            if cycle is not None:
                cycle.disconnect()
        self._queue = ()
        self._ignores_input = True
        self.flow.resume_writing()
        self._parser.close()

    def data_received(self, data: bytes) -> None:
        """Take a whole request whose head is cached; parse anything else."""
        if self._ignores_input:
            return
        parts = parts_of_whole_request(data) if self._parser.is_between else None
        try:
            if parts is None:
                self._parser.feed(data)
            elif (head := self._shared.heads.find(parts[0])) is None:
                self._parser.feed(data, parts[0])
            else:
                self._take_whole_request(head, parts[1], data[parts[2] :])
        except MLStreamError as error:
            self._refuse(error)

    def eof_received(self) -> bool:
        """Keep the connection of a client that closed its side, if its requests are whole; not over TLS."""
        if self._lingering or self._active is None or self._reading is not None or self.secure_channel is not None:
            return False
        self._ignores_input = True
        self._half_closed = _HalfClosedClient(self.transport, self._loop, lambda: self._active)
        self._last().keep_alive = False
        self._active.half_close()
        return True

    def pause_writing(self) -> None:
        """Note that the transport's write buffer is full."""
        self.flow.pause_writing()

    def resume_writing(self) -> None:
        """Note that the transport accepts bytes again."""
        self.flow.resume_writing()

    # Called by the parser.

    def begin_request(self) -> None:
        """Set the deadlines of a request."""
        now = self._loop.time()
        self.request_deadline = now + self._shared.limits.request_seconds
        self._deadline = now + self._shared.limits.head_seconds

    def take_head(self, head: RequestHead) -> None:
        """Start the application, or queue the request until the response before it has ended."""
        if not self._ignores_input:
            self.wait_for_body()
            self._take(head, head.scope.copy())

    def take_body(self, body: bytes) -> None:
        """Pass on a piece of the body."""
        if self._reading is not None and not self._ignores_input:
            self.wait_for_body()
            self._reading.add_body(body)

    def end_request(self, trailers: Headers) -> None:
        """Pass on that the request is whole."""
        if self._reading is None:
            return
        self._deadline = NEVER
        self._ignores_input = self._ignores_input or not self._reading.keep_alive
        self._reading.end_body(trailers)
        self._reading = None

    # Called by a cycle.

    def response_headers(self) -> Headers:
        """Return the headers of every response: `Date`."""
        return self._shared.state.default_headers

    def default_lines(self) -> bytes:
        """Return the headers of every response as lines of a head."""
        known, headers = self._shared.default_lines, self._shared.state.default_headers
        if known.headers is not headers:  # uvicorn makes new ones each second
            known.headers, known.lines = headers, b"".join([b"%b: %b\r\n" % pair for pair in headers])
        return known.lines

    def response_ended(self) -> None:
        """Close the connection, start the next request, or wait for a request."""
        cycle, self._active = self._active, None
        self._shared.state.total_requests += 1
        if self.transport.is_closing() or cycle is None:
            return
        if len(self._queue) < 2:
            self.flow.resume_reading()
        if not cycle.keep_alive:
            self._close_after(cycle)
        elif self._queue:
            cycle, *rest = self._queue
            self._queue = tuple(rest)
            self._start(cycle)
        elif self._refusal is not None:
            self._send_refusal(self._refusal)
        elif self._reading is None:
            self._wait_for_request()

    # Called by the worker.

    def shutdown(self) -> bool:
        """Close the connection after the responses in flight; return whether a request may still come.

        The first request of a client that has just connected may be in transit, or the rest of a head.
        """
        if self._active is not None:
            self._ignores_input = self._ignores_input or self._reading is None
            self._last().keep_alive = False
        elif self._ignores_input or (self._has_served and not self._parser.in_head):
            self.transport.close()
        else:
            if not self._is_stopping:
                self._loop.call_later(LATE_REQUEST_SECONDS, self._give_up_waiting)
            self._is_stopping = True
            return True
        return False

    def check_deadlines(self, now: float) -> None:
        """Act on deadlines that have passed, by the loop's clock; called once a second."""
        closing = self.transport.is_closing()
        if closing or self.flow.write_paused:
            tcp = None if self.secure_channel is None else self.secure_channel.tcp
            self._write_stall.check(self.transport, tcp, now, self._shared.limits.unread_seconds)
        else:
            self._write_stall.forget()
        if now >= self._deadline and not closing:
            self._expire(now)
        elif self._half_closed is not None and not closing:
            self._half_closed.check()

    def _take_whole_request(self, head: RequestHead, length: bytes, body: bytes) -> None:
        """Start the application for a request that has arrived whole."""
        if (cycle := self._take(head, head.scope_with_length(length))) is not None:
            cycle.add_body(body)
            self.end_request(())

    def _take(self, head: RequestHead, scope: dict[str, Any]) -> RequestCycle | None:
        """Create the cycle of a request and start it or queue it; None if the request is ignored."""
        if len(self._queue) == MAX_PIPELINED:  # such a client must expect no response to the rest
            self._ignores_input = True
            self._last().keep_alive = False
            return None
        scope["server"], scope["client"] = self._server, self._client
        cycle = self._reading = RequestCycle(self, head, scope, self._shared.bodies)
        if self.secure_channel is not None:
            self.secure_channel.mark(scope)
        if self._is_stopping:
            cycle.keep_alive = False
        self._has_served = True
        if self._active is not None:
            self.flow.pause_reading()
            self._queue += (cycle,)
            return cycle
        if scope["http_version"] == "1.1" and not self.flow.write_paused:  # else the head alone would wait
            cycle.offer_writer()
        self._start(cycle)
        return cycle

    def _start(self, cycle: RequestCycle) -> None:
        self._active = cycle
        if self._half_closed is not None:
            cycle.half_close()
        tasks = self._shared.state.tasks
        task = self._loop.create_task(cycle.run(self._shared.app, self._shared.log))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def _last(self) -> RequestCycle:
        last = self._queue[-1] if self._queue else self._active
        assert last is not None
        return last

    def wait_for_body(self) -> None:
        """Set the deadline of the next part of the body, within that of the whole request."""
        self._deadline = min(self._loop.time() + self._shared.limits.body_read_seconds, self.request_deadline)

    def _wait_for_request(self) -> None:
        limits = self._shared.limits
        seconds = limits.head_seconds if self._parser.in_head else limits.keep_alive_seconds
        self._deadline = self._loop.time() + seconds

    # Refusals, and the ends of a connection.

    def _refuse(self, error: MLStreamError) -> None:
        """Refuse the request that is being received, after the responses to those before it."""
        self._ignores_input = True
        refused, self._reading = self._reading, None
        if refused is None or refused is not self._active:
            if refused is not None:
                self._queue = tuple(cycle for cycle in self._queue if cycle is not refused)
                refused.disconnect()
            self._refusal = error
            if self._active is None:
                self._send_refusal(error)
            return
        refused.disconnect()
        if refused.started:
            self.transport.close()
        else:
            self._active = None
            self._send_refusal(error)

    def _send_refusal(self, error: MLStreamError) -> None:
        self.transport.write(refusal(error, self.response_headers()))
        self._linger()

    def _close_after(self, cycle: RequestCycle) -> None:
        for waiting in self._queue:
            waiting.disconnect()
        if cycle.more_body:
            self._linger()
        else:
            self.transport.close()

    def _linger(self) -> None:
        """Close only the sending side for some time.

        If bytes arrive on a closed socket, the client loses what it has not read yet (RFC 9112, section 9.6).
        """
        self._ignores_input = self._lingering = True
        self._reading = None
        self._deadline = self._loop.time() + self._shared.limits.linger_seconds
        self.flow.resume_reading()
        if self.secure_channel is None:
            self.transport.write_eof()

    def _expire(self, now: float) -> None:
        limits = self._shared.limits
        before = self._active is not None and self._active is not self._reading
        if before or (self.flow.read_paused and not self._lingering):
            self._deadline = now + limits.head_seconds  # the client is not the one that is slow
        elif self._parser.in_head and not self._lingering:
            self._refuse(head_timeout(limits))
        elif self._reading is not None:
            self._refuse(body_timeout(limits))
        else:
            self._deadline = NEVER
            self.transport.close()

    def _give_up_waiting(self) -> None:
        """Close the connection if the client has sent no request since the server began to stop."""
        if self._active is None:
            self.transport.close()


class _HalfClosedClient:
    """Finds out whether a client that has closed its side waits for a response or has disconnected.

    `active` returns the request whose response is being sent.
    """

    __slots__ = ("_active", "_checks", "_loop", "_transport")

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, active: Callable[[], RequestCycle | None]
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._active = active
        self._checks = 1
        loop.call_later(_PROBE_SECONDS, self._probe)

    def check(self) -> None:
        """Abort the connection if it was reset or, of an HTTP/1.0 client, which cannot be probed, after some time."""
        if self._transport.is_closing():  # a closed socket of uvloop has no options
            return
        peer = self._transport.get_extra_info("socket")
        if peer is not None and peer.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._transport.abort()
        elif self._awaits_start("1.0"):
            self._checks += 1
            if self._checks > _MAX_CHECKS:
                self._transport.abort()

    def _probe(self) -> None:
        """Send an interim response: a client that waits ignores it, one that has disconnected resets the connection."""
        if self._awaits_start("1.1"):
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._loop.call_later(_PROBE_SECONDS, self.check)

    def _awaits_start(self, http_version: str) -> bool:
        """Return whether a client of that version waits for a response to begin."""
        active = self._active()
        if active is None or active.started or self._transport.is_closing():
            return False
        return bool(active.scope["http_version"] == http_version)
