"""Flow control on a client's connection: pausing its directions, and ending one whose client stopped reading."""

import asyncio


class FlowControl:
    """Pauses and resumes both directions. There is an asyncio.Event (760 bytes) only while the client is slow."""

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


class WriteStall:
    """Notices a client that has stopped reading, by the size of the write buffer, once a second while it is slow."""

    __slots__ = ("_since", "_size")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start over, since the client reads."""
        self._size: int | None = None
        self._since = 0.0

    def check(
        self, transport: asyncio.Transport, tcp: asyncio.Transport | None, now: float, unread_seconds: float
    ) -> None:
        """Abort the connection if its client has read nothing for so long; `tcp` is the transport beneath TLS."""
        size = transport.get_write_buffer_size()
        if tcp is not None:
            size += tcp.get_write_buffer_size()
            if size == 0 and transport.is_closing():  # all is sent; TLS would wait for the client to close
                transport.abort()
        if size != self._size:
            self._size, self._since = size, now
        if now - self._since >= unread_seconds:
            transport.abort()
