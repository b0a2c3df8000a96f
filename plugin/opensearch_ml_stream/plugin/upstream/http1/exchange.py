"""Exchange: one request and its response on a connection. The hot path of every stream.

For each read of the socket the body's part of the bytes goes to a sink, or is kept and the waiting reader woken. There
is no task, queue or timer for a chunk.
"""

import asyncio
from collections.abc import Mapping
from math import inf

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.upstream import Sink, network_errors
from opensearch_ml_stream.plugin.upstream.http1.bodies import Body, ChunkedBody, MalformedBody
from opensearch_ml_stream.plugin.upstream.http1.connection import Connection
from opensearch_ml_stream.plugin.upstream.http1.response_head import (
    Head,
    MalformedHead,
    ResponseHeadParser,
    body_of,
)

HIGH_WATER_BYTES = 64 * 1024  # with more unread bytes than this, reading from the provider is paused


class Exchange(asyncio.Protocol):
    """One request and its response: the protocol of the transport meanwhile, an UpstreamResponse after `start`.

    | state         | bytes arrive                          | `read`, `pump`            | connection ends    | silence |
    |---------------|---------------------------------------|---------------------------|--------------------|---------|
    | awaiting head | head complete: streaming or done      | not allowed yet           | failed             | failed  |
    | streaming     | to the sink, else kept (1); end: done | wait for bytes            | failed or done (2) | failed  |
    | paused        | kept; end: done                       | take all: streaming       | failed or done (2) | ignored |
    | done          | dropped, not `reusable`               | take the rest, then b""   | not `reusable`     | ignored |
    | failed        | ignored                               | take the rest, then raise | ignored            | ignored |

    (1) With more than HIGH_WATER_BYTES kept: paused. The transport then stops reading, so few bytes arrive if any.
    (2) Done if the body is one that ends with the connection (CloseBody), and the provider has ended it: by a FIN,
    over TLS by a close_notify. Without one the body may have been cut off by whoever is in between.

    Silence: no byte for `read_timeout` seconds, counted anew from the end of a pause. Bytes that are not HTTP/1.1 lead
    from the first three states to failed. Entering failed aborts the connection.

    `start` comes first, once; `read` and `pump` after it, one call at a time. `stop` ends the timer in any state,
    `abort` also the connection. Only a done exchange can be `reusable`, only a streaming one has a `unfinished_body`.

    Who relays a request calls `begin` in place of `start`, which limits no silence, and `next_head` until the head is
    final. What is left of the request goes out by `write` and `drain`, beside `next_head` and `read`.
    """

    __slots__ = (
        "_authority",
        "_body",
        "_failure",
        "_head_parser",
        "_heads",
        "_last_activity",
        "_loop",
        "_method",
        "_paused",
        "_pending",
        "_read_timeout",
        "_sink",
        "_timed_out",
        "_timer",
        "_transport",
        "_unread",
        "_waiter",
        "_writable",
        "bytes_received",
        "headers",
        "keep_alive",
        "status",
    )  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        authority: str,
        read_timeout: float = inf,
        method: str = "GET",
    ) -> None:
        assert connection.transport is not None
        self._transport = connection.transport
        self._authority = authority
        self._read_timeout = read_timeout
        self._timed_out = network_errors.read_timed_out
        self._loop = connection.loop
        self._method = method
        self._heads: list[Head] = []
        self._head_parser: ResponseHeadParser | None = ResponseHeadParser(self._heads.append)
        self._writable: asyncio.Event | None = None  # while the transport accepts no more
        self._body: Body | None = None
        self._pending: list[bytes] = []
        self._unread = 0
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._sink: Sink | None = None
        self._failure: UpstreamError | None = None
        self._last_activity = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.keep_alive = False
        self.bytes_received = False  # whether any byte has come back

    @property
    def done(self) -> bool:
        """Whether the whole body has been received."""
        return self._body is not None and self._body.done

    @property
    def at_end(self) -> bool:
        """Whether the whole body has been received and read."""
        return self.done and not self._pending

    @property
    def trailers(self) -> list[tuple[bytes, bytes]]:
        """The trailers that came behind the body; names are in lower case."""
        return self._body.trailers if isinstance(self._body, ChunkedBody) else []

    @property
    def reusable(self) -> bool:
        """Whether nothing of this exchange is left on the connection, and the provider keeps it open."""
        body = self._body
        return (
            self.keep_alive
            and body is not None
            and body.done
            and not body.excess
            and not self._paused
            and self._failure is None
            and not self._transport.is_closing()
            and self._transport.get_write_buffer_size() == 0
        )

    @property
    def unfinished_body(self) -> Body | None:
        """The body if it is incomplete, all received bytes of it were read and the connection is good, else None."""
        good = self.keep_alive and not self._paused and not self._unread and self._failure is None
        return self._body if good and not self.done and not self._transport.is_closing() else None

    @property
    def silent_seconds(self) -> float:
        """For how long nothing has been received; before the first byte: since the request was sent."""
        return self._loop.time() - self._last_activity

    async def start(self, request: bytes) -> None:
        """Send the request and wait for the response head.

        UpstreamError if the connection ends before it or the bytes are not HTTP/1.1, ReadTimedOut after
        `read_timeout` seconds of silence.
        """
        self.begin(request)
        self._last_activity = self._loop.time()
        self._timer = self._loop.call_later(self._read_timeout, self._check_silence)
        while self._body is None:
            if self._failure is not None:
                raise self._failure
            self._waiter = self._loop.create_future()
            await self._waiter
        self._heads.clear()

    def begin(self, request: bytes) -> None:
        """Send a request, or its first part, without waiting."""
        self._transport.set_protocol(self)  # nothing is read before this
        self._transport.write(request)

    async def next_head(self) -> Head:
        """Return the next head: interim ones (1xx), then the final one. UpstreamError if none comes."""
        while not self._heads:
            if self._failure is not None:
                raise self._failure
            self._waiter = self._loop.create_future()
            await self._waiter
        return self._heads.pop(0)

    def write(self, data: bytes) -> None:
        """Send another part of the request without waiting."""
        self._transport.write(data)

    async def drain(self) -> None:
        """Wait until enough of the request has been sent. UpstreamError if the connection ends before."""
        if self._writable is not None:
            await self._writable.wait()
        if self._failure is not None:
            raise self._failure

    async def read(self) -> bytes:
        """Return all unread bytes of the body, waiting for the first; b"" at the end. See UpstreamResponse.read."""
        pending = self._pending
        while not pending:
            if self._failure is not None:
                raise self._failure
            if self.done:
                return b""
            self._waiter = self._loop.create_future()
            await self._waiter
        data = pending[0] if len(pending) == 1 else b"".join(pending)
        pending.clear()
        self._unread = 0
        if self._paused:
            self._paused = False
            self._last_activity = self._loop.time()  # until now the reader was slow, not the provider
            if not self._transport.is_closing():
                self._transport.resume_reading()
        return data

    async def pump(self, sink: Sink) -> bool:
        """See UpstreamResponse.pump."""
        while True:
            while self._pending or self.done or self._failure is not None:
                data = await self.read()
                if not data or not sink(data):
                    return not data
            self._sink = sink
            try:
                self._waiter = self._loop.create_future()
                await self._waiter
                stopped = self._sink is None
            finally:
                self._sink = None
            if stopped:
                return False

    def limit_silence(self, seconds: float) -> None:
        """See UpstreamResponse.limit_silence."""
        if seconds < self._read_timeout and self._timer is not None:
            self._read_timeout = seconds
            self._timed_out = network_errors.fell_silent
            self._timer.cancel()
            self._check_silence()

    def fail(self, error: UpstreamError) -> None:
        """See UpstreamResponse.fail."""
        if not self.done:
            self._fail(error)

    def stop(self) -> None:
        """End the timer. The caller decides what becomes of the connection."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def abort(self) -> None:
        """Close the connection at once, so that the provider stops its work."""
        self.stop()
        self._transport.abort()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Parse bytes of the response, and pass on those of its body."""
        body = self._body
        if body is None:
            self._receive_head(data)
            return
        try:
            data = body.feed(data)
        except MalformedBody as error:
            self._receive_malformed(error)
            return
        self._last_activity = self._loop.time()
        if data:
            sink = self._sink
            if sink is None:
                self._keep(data)
            elif not sink(data):
                self._sink = None
            elif not body.done:
                return
        elif not body.done:
            return
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _receive_malformed(self, error: MalformedBody) -> None:
        if error.data and self._sink is None:
            self._keep(error.data)
        elif error.data and self._sink is not None and not self._sink(error.data):
            self._sink = None
        self._fail(network_errors.not_http(self._authority, str(error)))

    def _keep(self, data: bytes) -> None:
        self._pending.append(data)
        self._unread += len(data)
        if self._unread > HIGH_WATER_BYTES and not self._paused and not self.done:
            self._paused = True
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        """Note that the transport's write buffer is full."""
        self._writable = asyncio.Event()

    def resume_writing(self) -> None:
        """Note that the transport accepts bytes again."""
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    def eof_received(self) -> bool:
        """End the response, and let the transport close itself."""
        self._end(None)
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """End the response: what the provider has not ended itself is cut off."""
        self._end(error or ConnectionResetError())

    def _receive_head(self, data: bytes) -> None:
        self.bytes_received = True
        self._last_activity = self._loop.time()
        assert self._head_parser is not None
        try:
            parsed = self._head_parser.feed(data)
            if parsed is None:
                if self._heads:
                    self._wake()
                return
            head, rest = parsed
            self._body = body_of(head, self._method)
            self._head_parser = None
        except MalformedHead as error:
            self._fail(network_errors.not_http(self._authority, str(error)))
            return
        self._heads.append(head)
        self.status = head.status
        self.headers = head.headers
        self.keep_alive = head.keep_alive
        if rest:
            self.data_received(rest)
        self._wake()

    def _end(self, error: Exception | None) -> None:
        """Note that the provider has closed its side (`error` is None), or that the connection broke."""
        body = self._body
        self.keep_alive = False
        self.resume_writing()
        if self._failure is None and body is None:
            self._fail(network_errors.closed_early(self._authority))
        elif self._failure is None and body is not None and not body.done and (error is not None or not body.eof()):
            self._fail(network_errors.closed_in_the_middle(self._authority))
        else:
            self._wake()

    def _fail(self, failure: UpstreamError) -> None:
        if self._failure is None:
            self._failure = failure
        self.abort()
        self._wake()

    def _check_silence(self) -> None:
        """Fail if the provider has been silent for `read_timeout`, else look again when it will have been.

        The exchange's one timer: it is not moved for every read of the socket.
        """
        if self.done or self._failure is not None:
            return
        wait = self._read_timeout if self._paused else self._last_activity + self._read_timeout - self._loop.time()
        if wait > 0:
            self._timer = self._loop.call_later(wait, self._check_silence)
        else:
            self._fail(self._timed_out(self._authority, self._read_timeout))
