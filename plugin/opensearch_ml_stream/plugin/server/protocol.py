"""The server's HTTP protocol: uvicorn's, with a shorter way for the chunks of a stream.

It adds a ChunkWriter to each request, and a flow control that is small for idle streams. Both build upon names that
uvicorn does not promise to keep. Where a version lacks one of them, uvicorn's own protocol is used: every response
still works, and a chunk costs an ASGI message.
"""

import asyncio
from time import monotonic
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from opensearch_ml_stream.rest_handlers.http.chunk_writer import CHUNK_WRITER

_ATTRIBUTES = frozenset({"flow", "pipeline", "scope", "transport"})  # of a protocol, used below
_METHODS = frozenset({"connection_made", "on_headers_complete"})  # of a protocol, extended below


def http_protocol(own: type[asyncio.Protocol] = HttpToolsProtocol) -> type[asyncio.Protocol]:
    """Return StreamingProtocol, or uvicorn's `own` protocol if it is not one that StreamingProtocol can extend."""
    return StreamingProtocol if is_supported(own, FlowControl) else own


def is_supported(protocol: type, flow_control: type) -> bool:
    """Return whether StreamingProtocol can extend these classes of uvicorn.

    `protocol` must have every name that StreamingProtocol uses; every public method of `flow_control` must exist on
    StreamFlowControl.
    """
    code = getattr(vars(protocol).get("__init__"), "__code__", None)  # its attributes exist only on a connection
    attributes = () if code is None else code.co_names
    public = {name for name in vars(flow_control) if not name.startswith("_")}
    return (
        set(attributes) >= _ATTRIBUTES
        and all(hasattr(protocol, name) for name in _METHODS)
        and all(hasattr(StreamFlowControl, name) for name in public)
    )


class StreamingProtocol(HttpToolsProtocol):
    """Offers a ChunkWriter to each request whose response can begin at once, as nearly all can."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Replace uvicorn's flow control."""
        super().connection_made(transport)
        self.flow = StreamFlowControl(transport)  # type: ignore[assignment]  # the same interface

    def on_headers_complete(self) -> None:
        """Add a ChunkWriter to the request's scope."""
        super().on_headers_complete()
        if self.flow.write_paused or self.pipeline:
            return  # bytes of an earlier response would hold the head back, but not the chunks
        # The request's task does not run before this returns.
        writer: Any = _ChunkWriter(self.transport, self.flow)  # uvicorn's type knows its own extensions only
        self.scope["extensions"] = {CHUNK_WRITER: writer}


class StreamFlowControl:
    """uvicorn's FlowControl, with an asyncio.Event (760 bytes) only while a client is slow: few of thousands are."""

    __slots__ = ("_transport", "_writable", "read_paused", "write_paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._writable: asyncio.Event | None = None
        self.read_paused = False
        self.write_paused = False

    async def drain(self) -> None:
        """Wait until the transport accepts bytes again."""
        if self._writable is not None:
            await self._writable.wait()

    def pause_reading(self) -> None:
        """Pause reading from the client."""
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resume reading from the client."""
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """Note that the transport's write buffer is full (called by the transport)."""
        if not self.write_paused:
            self.write_paused = True
            self._writable = asyncio.Event()

    def resume_writing(self) -> None:
        """Note that the transport accepts bytes again (called by the transport)."""
        if self.write_paused:
            self.write_paused = False
            if self._writable is not None:
                self._writable.set()
                self._writable = None


class _ChunkWriter:
    """Writes chunks of `Transfer-Encoding: chunked` (RFC 9112, section 7.1), which uvicorn has announced."""

    __slots__ = ("_flow", "_transport", "last_write")

    def __init__(self, transport: asyncio.Transport, flow: FlowControl) -> None:
        self._transport = transport
        self._flow = flow
        self.last_write = monotonic()

    def write_chunk(self, data: bytes) -> bool:
        self.last_write = monotonic()
        transport = self._transport
        if not transport.is_closing():
            transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        return not self._flow.write_paused

    async def drain(self) -> None:
        if self._flow.write_paused:
            await self._flow.drain()
