"""The last bytes of an answer whose reader has what it wanted.

A decoder knows from `[DONE]` that a stream is over, before the body's own end (`0\r\n\r\n`) has come. Waiting for
that would delay the caller, closing would cost the next request a new connection: so the connection stays open for
a moment after a good end, and goes to the pool if the body ends in it.
"""

import asyncio
from collections.abc import Callable

from opensearch_ml_stream.plugin.upstream.http1.bodies import Body, MalformedBody

LINGER_SECONDS = 0.05
LINGER_BYTES = 1024  # more than this is not an ending but an answer that goes on: it is paid for, and closed


class Linger(asyncio.Protocol):
    """`over` is called once, with whether the connection may be used again."""

    __slots__ = ("_body", "_left", "_over", "_timer", "_transport")

    def __init__(self, transport: asyncio.Transport, body: Body, over: Callable[[bool], None]) -> None:
        self._transport = transport
        self._body = body
        self._over: Callable[[bool], None] | None = over
        self._left = LINGER_BYTES
        self._timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._finish)
        transport.set_protocol(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._left -= len(self._body.feed(data))
        except MalformedBody:
            self._finish()
            return
        if self._body.done or self._left < 0:
            self._finish()

    def eof_received(self) -> bool:
        self._finish()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._finish()

    def _finish(self) -> None:
        if self._over is None:
            return
        over, self._over = self._over, None
        self._timer.cancel()
        body = self._body
        over(body.done and not body.excess and not self._transport.is_closing())
