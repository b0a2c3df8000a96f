r"""Linger: keeps a connection open for the last bytes of a response whose reader has finished early.

A decoder knows from `[DONE]` that a stream is over, before the body's own end (`0\r\n\r\n`) has been received. Waiting
for that would delay the caller, closing would cost the next request a new connection: so the connection stays open for
a moment, and goes to the pool if the body ends in it.
"""

import asyncio
from collections.abc import Callable

from opensearch_ml_stream.plugin.upstream.http1.bodies import Body, MalformedBody

LINGER_SECONDS = 0.05
LINGER_BYTES = 1024  # a response that sends more than this is not at its end, and it is paid for: it is closed


class Linger(asyncio.Protocol):
    """The protocol of a transport until the body ends, or for LINGER_SECONDS or LINGER_BYTES at most.

    `on_end` is called once, with whether the connection can be reused.
    """

    __slots__ = ("_body", "_on_end", "_remaining", "_timer", "_transport")

    def __init__(self, transport: asyncio.Transport, body: Body, on_end: Callable[[bool], None]) -> None:
        self._transport = transport
        self._body = body
        self._on_end: Callable[[bool], None] | None = on_end
        self._remaining = LINGER_BYTES
        self._timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, self.end)
        transport.set_protocol(self)

    def data_received(self, data: bytes) -> None:
        """Drop bytes of the body; end with the body, or when it has too many."""
        try:
            self._remaining -= len(self._body.feed(data))
        except MalformedBody:
            self.end()
            return
        if self._body.done or self._remaining < 0:
            self.end()

    def eof_received(self) -> bool:
        """End, and let the transport close itself."""
        self.end()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """End."""
        self.end()

    def end(self) -> None:
        """Wait no longer; whether the connection can be reused is as far as has been received."""
        if self._on_end is None:
            return
        on_end, self._on_end = self._on_end, None
        self._timer.cancel()
        body = self._body
        on_end(body.done and not body.excess and not self._transport.is_closing())
