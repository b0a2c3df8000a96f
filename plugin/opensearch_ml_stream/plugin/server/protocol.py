"""HTTP to clients: uvicorn's protocol, and beside it the short way for the chunks of a stream."""

import asyncio
from time import monotonic
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from opensearch_ml_stream.rest_handlers.http.chunk_writer import CHUNK_WRITER


class StreamingProtocol(HttpToolsProtocol):
    """Offers a ChunkWriter to each request whose answer can begin at once, as nearly all can."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _Flow(transport)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        if self.flow.write_paused or self.pipeline:
            return  # what is still to be taken of an earlier answer would hold the head back, but not the chunks
        # The request's task does not run before this returns.
        writer: Any = _ChunkWriter(self.transport, self.flow)  # uvicorn's type knows its own extensions only
        self.scope["extensions"] = {CHUNK_WRITER: writer}


class _Flow(FlowControl):
    """uvicorn's, but an asyncio.Event (760 bytes) only where a reader is slow: few of thousands of open streams are."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.read_paused = False
        self.write_paused = False

    def pause_writing(self) -> None:
        if not self.write_paused:
            self._is_writable_event = asyncio.Event()
            self.write_paused = True


class _ChunkWriter:
    """Chunks of `Transfer-Encoding: chunked` (RFC 9112, section 7.1), which uvicorn has announced."""

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
