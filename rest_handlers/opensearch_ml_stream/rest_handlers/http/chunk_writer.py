"""Writers of a response's chunks: by messages of ASGI, or by a shorter way that the server offers.

ASGI takes a message and a coroutine for every part of a body. That is much beside a token, so a server may put a
ChunkWriter of its own among the `extensions` of the scope, under CHUNK_WRITER. Head and end of the response are still
sent as messages.
"""

from time import monotonic
from typing import Protocol

from starlette.types import Send

CHUNK_WRITER = "opensearch_ml_stream.chunk_writer"

# A message of our server's `receive`, once: the client has closed its side of the connection. It may wait for its
# response, or be gone; only a write can tell.
HALF_CLOSED = "opensearch_ml_stream.half_closed"


class ChunkWriter(Protocol):
    """Writer of the body of a response that has started and not ended."""

    last_write: float  # time of the last write, or of the start: seconds of `time.monotonic`

    def write_chunk(self, data: bytes) -> bool:
        """Write without waiting; return False if `drain` must be awaited before the next write."""
        ...

    async def drain(self) -> None:
        """Send what is still held, or wait until a slow client has caught up."""
        ...


class MessageWriter:
    """ChunkWriter of any ASGI server: what is written is held until `drain` sends it as `http.response.body`."""

    __slots__ = ("_held", "_send", "last_write")

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held = b""
        self.last_write = monotonic()

    def write_chunk(self, data: bytes) -> bool:
        """Hold the chunk and return False."""
        self.last_write = monotonic()
        self._held += data
        return False

    async def drain(self) -> None:
        """Send what is held, if anything."""
        held, self._held = self._held, b""
        if held:
            await self._send({"type": "http.response.body", "body": held, "more_body": True})
