"""One request and its response on a connection: the relay's hot path.

The exchange is the transport's protocol for as long as it lasts. Per read: the body's part of the bytes is kept, and
the one who waits in `read` is woken. No task, queue or timer for a chunk.
"""

import asyncio
from collections.abc import Mapping

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.upstream import Sink, network_errors
from opensearch_ml_stream.plugin.upstream.http1.bodies import Body, MalformedBody
from opensearch_ml_stream.plugin.upstream.http1.response_head import MalformedHead, ResponseHeadParser, body_of

HIGH_WATER_BYTES = 64 * 1024  # unread bytes at which the provider is made to wait


class Exchange(asyncio.Protocol):
    """An UpstreamResponse once `start` has returned."""

    __slots__ = (
        "_authority",
        "_body",
        "_failure",
        "_head_parser",
        "_last_activity",
        "_loop",
        "_paused",
        "_pending",
        "_read_timeout",
        "_sink",
        "_timer",
        "_transport",
        "_unread",
        "_waiter",
        "bytes_received",
        "headers",
        "keep_alive",
        "status",
    )  # fmt: skip

    def __init__(self, transport: asyncio.Transport, place: str, read_timeout: float) -> None:
        self._transport = transport
        self._authority = place
        self._read_timeout = read_timeout
        self._loop = asyncio.get_running_loop()
        self._head_parser: ResponseHeadParser | None = ResponseHeadParser()
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
        """The whole body has come."""
        return self._body is not None and self._body.done

    @property
    def reusable(self) -> bool:
        """Nothing of this exchange is left on the connection, and the provider keeps it open."""
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
    def lingering_body(self) -> Body | None:
        """The body, if all that has come of it was read, more is to come, and the connection is good."""
        good = self.keep_alive and not self._paused and not self._unread and self._failure is None
        return self._body if good and not self.done and not self._transport.is_closing() else None

    async def start(self, request: bytes) -> None:
        """Sends the request and waits for the head. UpstreamError if none comes."""
        self._transport.write(request)
        self._transport.set_protocol(self)  # nothing is read in between
        self._last_activity = self._loop.time()
        self._timer = self._loop.call_later(self._read_timeout, self._check_silence)
        while self._body is None:
            if self._failure is not None:
                raise self._failure
            self._waiter = self._loop.create_future()
            await self._waiter

    async def read(self) -> bytes:
        """All body bytes that have come since the last read; b"" at the end. UpstreamError if it breaks off."""
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
            self._last_activity = self._loop.time()  # the silence so far was ours
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

    def stop(self) -> None:
        """Ends the timer. What becomes of the connection is the caller's to say."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def abort(self) -> None:
        """Closes the connection at once, so that the provider stops its work."""
        self.stop()
        self._transport.abort()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def data_received(self, data: bytes) -> None:
        body = self._body
        if body is None:
            self._receive_head(data)
            return
        try:
            data = body.feed(data)
        except MalformedBody as error:
            self._fail(network_errors.not_http(self._authority, str(error)))
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

    def _keep(self, data: bytes) -> None:
        self._pending.append(data)
        self._unread += len(data)
        if self._unread > HIGH_WATER_BYTES and not self._paused and not self.done:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        self._end(None)
        return False  # and the transport closes itself

    def connection_lost(self, error: Exception | None) -> None:
        self._end(error)

    def _receive_head(self, data: bytes) -> None:
        self.bytes_received = True
        self._last_activity = self._loop.time()
        assert self._head_parser is not None
        try:
            found = self._head_parser.feed(data)
            if found is None:
                return
            head, rest = found
            self._body = body_of(head)
            self._head_parser = None
        except MalformedHead as error:
            self._fail(network_errors.not_http(self._authority, str(error)))
            return
        self.status = head.status
        self.headers = head.headers
        self.keep_alive = head.keep_alive
        if rest:
            self.data_received(rest)
        self._wake()

    def _end(self, error: Exception | None) -> None:
        """The provider has closed its side, or the connection broke."""
        body = self._body
        self.keep_alive = False
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
        """The one timer of an exchange: it is not moved for every read, but looks at when the last one was."""
        if self.done or self._failure is not None:
            return
        left = self._read_timeout if self._paused else self._last_activity + self._read_timeout - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._check_silence)
        else:
            self._fail(network_errors.read_timed_out(self._authority, self._read_timeout))
