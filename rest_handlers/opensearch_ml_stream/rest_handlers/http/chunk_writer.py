"""How the chunks of an answer reach its client: the way of any ASGI server, or a shorter one that the server offers.

ASGI takes a message and a coroutine for every part of a body. That is much beside a token, so a server may put a
ChunkWriter of its own among the `extensions` of the scope, under CHUNK_WRITER. Head and end of the answer are sent as
ever.
"""

from time import monotonic
from typing import Protocol

from starlette.types import Message, Scope, Send

CHUNK_WRITER = "opensearch_ml_stream.chunk_writer"


class ChunkWriter(Protocol):
    """The body of an answer that has started and not ended."""

    last_write: float  # CLOCK_MONOTONIC, seconds

    def write_chunk(self, data: bytes) -> bool:
        """Never waits. False if the client has to catch up: then `drain` must be awaited before the next write."""
        ...

    async def drain(self) -> None: ...


def chunk_writer(scope: Scope, send: Send) -> ChunkWriter:
    """The server's, if it has one."""
    offered: ChunkWriter | None = scope.get("extensions", {}).get(CHUNK_WRITER)
    return offered or MessageWriter(send)


class MessageWriter:
    """ASGI's `http.response.body`; only `drain` can send it."""

    __slots__ = ("_message", "_send", "last_write")

    def __init__(self, send: Send) -> None:
        self._send = send
        self._message: Message | None = None
        self.last_write = monotonic()

    def write_chunk(self, data: bytes) -> bool:
        self.last_write = monotonic()
        self._message = {"type": "http.response.body", "body": data, "more_body": True}
        return False

    async def drain(self) -> None:
        message, self._message = self._message, None
        if message is not None:
            await self._send(message)
