"""HTTP to clients: uvicorn's protocol, and beside it the short way for the chunks of a stream."""

from asyncio import Transport
from time import monotonic
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from opensearch_ml_stream.rest_handlers.chunk_writer import CHUNK_WRITER


class StreamingProtocol(HttpToolsProtocol):
    """Offers each request a ChunkWriter."""

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        # The request's task does not run before this returns.
        writer: Any = _ChunkWriter(self.transport, self.flow)  # uvicorn's type knows its own extensions only
        self.scope["extensions"] = {CHUNK_WRITER: writer}


class _ChunkWriter:
    """Chunks of `Transfer-Encoding: chunked` (RFC 9112, section 7.1), which uvicorn has announced."""

    __slots__ = ("_flow", "_transport", "last_write")

    def __init__(self, transport: Transport, flow: FlowControl) -> None:
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
