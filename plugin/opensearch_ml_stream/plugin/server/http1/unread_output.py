"""How long a client has taken nothing of what it is sent."""

import asyncio

from opensearch_ml_stream.plugin.server.http1.secure_channel import SecureChannel


class UnreadOutput:
    """The size of a connection's write buffer, looked at once a second while the client is slow."""

    __slots__ = ("_since", "_size")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: the client reads."""
        self._size: int | None = None
        self._since = 0.0

    def look(
        self, transport: asyncio.Transport, secure_channel: SecureChannel | None, now: float, unread_seconds: float
    ) -> None:
        """Break off a connection whose client has taken nothing for so long."""
        size = transport.get_write_buffer_size()
        if secure_channel is not None:
            size += secure_channel.tcp.get_write_buffer_size()
            if size == 0 and transport.is_closing():  # all is sent; TLS would wait for the client's own farewell
                transport.abort()
        if size != self._size:
            self._size, self._since = size, now
        if now - self._since >= unread_seconds:
            transport.abort()
