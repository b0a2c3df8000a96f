"""One connection to a host of the cluster, and the exchange on it: head, body and trailers of one response at a time.

Both directions have flow control: `drain` waits while the host does not read, and reading stops while nobody takes
what the host sends.
"""

import asyncio
import socket
from contextlib import suppress
from typing import cast

from opensearch_ml_stream.extensions.front_door.relay.hop_by_hop import Headers
from opensearch_ml_stream.extensions.front_door.relay.response_parser import HeadParser, ResponseHead
from opensearch_ml_stream.plugin.upstream.http1.bodies import Body, ChunkedBody, MalformedBody
from opensearch_ml_stream.plugin.upstream.http1.response_head import MalformedHead

HIGH_WATER_BYTES = 64 * 1024  # of a response that nobody has taken yet, before reading is paused
MAX_INFORMATIONAL = 32  # of one response
# A host that is gone without a word is noticed after some 2 minutes: it is the only end of a response that never comes.
_KEEP_ALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))


class Broken(Exception):
    """The connection ended, or what came on it is no HTTP/1.1, before the response was whole."""


class ClusterConnection(asyncio.Protocol):
    """A connection; `begin` starts an exchange, and one that is `reusable` behind it may begin another.

    `is_reused` from the second exchange on, `bytes_received` whether any byte of the present one has come,
    `idle_since` seconds of the loop's clock.
    """

    __slots__ = (
        "_body", "_failure", "_head_parser", "_heads", "_loop", "_method", "_pending", "_read_paused", "_unread",
        "_waiter", "_writable", "bytes_received", "head", "idle_since", "is_idle", "is_reused", "transport",
    )  # fmt: skip

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._failure: Broken | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._writable: asyncio.Event | None = None
        self._read_paused = False
        self.is_idle = False
        self.is_reused = False
        self.idle_since = 0.0
        self._reset("GET")

    def begin(self, method: str) -> None:
        """Expect a response to a request of that method."""
        self.is_reused = self.is_idle
        self.is_idle = False
        self._reset(method)

    @property
    def reusable(self) -> bool:
        """Whether the exchange is over, nothing of it is left, and the host keeps the connection open."""
        body = self._body
        return (
            self.head is not None
            and self.head.framing.keep_alive
            and body is not None
            and body.done
            and not body.excess
            and not self._unread
            and self._failure is None
            and not self.transport.is_closing()
            and self.transport.get_write_buffer_size() == 0
        )

    @property
    def is_whole(self) -> bool:
        """Whether all of the response's body was received, and taken by `read`."""
        return self._body is not None and self._body.done and not self._pending

    @property
    def trailers(self) -> Headers:
        """The trailers that came behind the body."""
        return self._body.trailers if isinstance(self._body, ChunkedBody) else []

    def write(self, data: bytes) -> None:
        """Write a part of the request without waiting."""
        self.transport.write(data)

    async def drain(self) -> None:
        """Wait until the host has read enough of the request. Broken if the connection ends before."""
        if self._writable is not None:
            await self._writable.wait()
        if self._failure is not None:
            raise self._failure

    async def next_head(self) -> ResponseHead:
        """Return the next head: informational ones, then the final one, which stays. Broken if none comes."""
        while not self._heads:
            if self.head is not None:
                return self.head
            await self._wait()
        return self._heads.pop(0)

    async def read(self) -> bytes:
        """Return what has come of the body, waiting for the first byte; b"" at its end. Broken if it is not whole."""
        pending = self._pending
        while not pending:
            if self._body is not None and self._body.done:
                return b""
            await self._wait()
        data = pending[0] if len(pending) == 1 else b"".join(pending)
        pending.clear()
        self._unread = 0
        if self._read_paused:
            self._read_paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()
        return data

    def fail(self, why: str) -> None:
        """End the exchange, and the connection at once: what waits on it raises Broken."""
        if self._failure is None:
            self._failure = Broken(why)
        self.transport.abort()
        self._wake()

    # The transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, and let the system find out whether a silent host is still there."""
        self.transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("socket")
        if peer is not None:
            with suppress(OSError):
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                for name, value in _KEEP_ALIVE:
                    if hasattr(socket, name):
                        peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        if self.is_idle:
            self.fail("it sent bytes without a request")
            return
        self.bytes_received = True
        try:
            while data and self._body is None:
                parsed = self._head_parser.feed(data)
                data = b"" if parsed is None else self._take_head(*parsed)
            if data and self._body is not None:
                self._keep(self._body.feed(data))
        except MalformedHead as error:
            self.fail(str(error))
        except MalformedBody as error:
            self._keep(error.data)
            self.fail(str(error))
        self._wake()

    def eof_received(self) -> bool:
        """Note that the host sends no more, and let the transport close itself."""
        self._end(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection is gone."""
        self._end(exc)

    def pause_writing(self) -> None:
        """Note that the transport's write buffer is full."""
        self._writable = asyncio.Event()

    def resume_writing(self) -> None:
        """Note that the transport accepts bytes again."""
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    def _reset(self, method: str) -> None:
        self._method = method
        self._head_parser = HeadParser()
        self._heads: list[ResponseHead] = []
        self.head: ResponseHead | None = None
        self._body: Body | None = None
        self._pending: list[bytes] = []
        self._unread = 0
        self.bytes_received = False

    def _take_head(self, head: ResponseHead, rest: bytes) -> bytes:
        if head.is_final:
            self._body = head.body(self._method)
            self.head = head
        elif len(self._heads) == MAX_INFORMATIONAL:
            raise MalformedHead("it has too many informational responses")
        else:
            self._heads.append(head)
        return rest

    def _keep(self, data: bytes) -> None:
        if not data:
            return
        self._pending.append(data)
        self._unread += len(data)
        if self._unread > HIGH_WATER_BYTES and not self._read_paused:
            self._read_paused = True
            self.transport.pause_reading()

    def _end(self, error: Exception | None) -> None:
        body = self._body
        whole = body is not None and (body.done or (error is None and body.eof()))
        if self._failure is None and not whole:
            where = "before it responded" if body is None else "in the middle of its response"
            self._failure = Broken(f"it closed the connection {where}")
        self.resume_writing()
        self._wake()

    async def _wait(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
