"""A client that has closed its side of the connection: it may wait for its response, or be gone."""

import asyncio
import socket
from collections.abc import Callable

from opensearch_ml_stream.plugin.server.http1.direct_cycle import DirectCycle

_PROBE_SECONDS = 0.1  # for a response that is just coming; and then for the client's reset
_MAX_LOOKS = 5  # an HTTP/1.0 client that closed its side is taken for gone after so many seconds of silence


class HalfClosedClient:
    """Finds out whether the client is still there; `active` returns the request whose response is being made."""

    __slots__ = ("_active", "_looks", "_loop", "_transport")

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, active: Callable[[], DirectCycle | None]
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._active = active
        self._looks = 1
        loop.call_later(_PROBE_SECONDS, self._probe)

    def look(self) -> None:
        """Break off a connection that was reset. An HTTP/1.0 client, which takes no probe, has its time."""
        if self._transport.is_closing():  # since the probe: uvloop's closed socket has no options
            return
        peer = self._transport.get_extra_info("socket")
        if peer is not None and peer.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._transport.abort()
        elif self._awaits_start("1.0"):
            self._looks += 1
            if self._looks > _MAX_LOOKS:
                self._transport.abort()

    def _probe(self) -> None:
        """Send what a client that closed its side may ignore, and one that is not there any more resets."""
        if self._awaits_start("1.1"):
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._loop.call_later(_PROBE_SECONDS, self.look)

    def _awaits_start(self, http_version: str) -> bool:
        """Return whether a client of that version waits for a response to begin."""
        active = self._active()
        if active is None or active.started or self._transport.is_closing():
            return False
        return bool(active.scope["http_version"] == http_version)
