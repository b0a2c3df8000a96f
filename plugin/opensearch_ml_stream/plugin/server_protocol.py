"""HTTP to clients: uvicorn's protocol, with fewer packets and a short way for the chunks of a stream."""

import asyncio
from time import monotonic
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from opensearch_ml_stream.rest_handlers.chunk_writer import CHUNK_WRITER

_INTERIM = b"HTTP/1.1 1"  # 100 Continue, which the client waits for


class StreamingProtocol(HttpToolsProtocol):
    """Offers each request a ChunkWriter."""

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        # The request's task does not run before this returns. uvicorn's types know nothing of either place.
        outgoing: Any = _Outgoing(self.transport, self.flow, self.loop)
        self.cycle.transport = outgoing
        self.scope["extensions"] = {CHUNK_WRITER: outgoing}


class _Outgoing:
    """Where the answer to one request goes: uvicorn's cycle takes it for the transport, and it is the ChunkWriter.

    The head of an answer waits for what follows it, so that both are one packet.
    """

    __slots__ = ("_flow", "_head", "_loop", "_transport", "last_write")

    def __init__(self, transport: asyncio.Transport, flow: FlowControl, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._flow = flow
        self._loop = loop
        self._head: bytes | None = None  # b"" once it is sent
        self.last_write = monotonic()

    def write_chunk(self, data: bytes) -> bool:
        """As a chunk of `Transfer-Encoding: chunked` (RFC 9112, section 7.1), which uvicorn has announced."""
        self.last_write = monotonic()
        transport = self._transport
        if not transport.is_closing():
            if self._head:
                transport.write(b"%b%x\r\n%b\r\n" % (self._head, len(data), data))
                self._head = b""
            else:
                transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        return not self._flow.write_paused

    async def drain(self) -> None:
        if self._flow.write_paused:
            await self._flow.drain()

    def write(self, data: bytes) -> None:
        """What uvicorn writes: perhaps an interim answer, then the head, then the body."""
        if self._head is None and not data.startswith(_INTERIM):
            self._head = data
            self._loop.call_soon(self._send_head)
            return
        if self._head:
            data = self._head + data
            self._head = b""
        self._transport.write(data)

    def close(self) -> None:
        self._send_head()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def _send_head(self) -> None:
        if self._head:
            self._transport.write(self._head)
            self._head = b""
