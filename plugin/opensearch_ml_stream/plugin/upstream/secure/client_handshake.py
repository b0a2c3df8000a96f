"""Handshake: the protocol of a TCP connection until TLS is agreed on it."""

import asyncio
import ssl
from collections.abc import Callable
from typing import cast

from opensearch_ml_stream.plugin.upstream.secure.handshake_turns import HandshakeTurns
from opensearch_ml_stream.plugin.upstream.secure.read_buffers import ReadBuffers
from opensearch_ml_stream.plugin.upstream.secure.record_layer import RecordLayer

# What is called once TLS is agreed on, with the TCP transport and the bytes that have come behind the handshake.
OnDone = Callable[[asyncio.Transport, RecordLayer, bytes], None]


class Handshake(asyncio.BufferedProtocol):
    """Agree on TLS, each step in its turn. `finished` is done when it is: with None, or with the error.

    The error is an ssl.SSLError, a ConnectionResetError if the peer has hung up, or a ValueError for a host of which
    no certificate can be.
    """

    __slots__ = ("_buffers", "_new_records", "_on_done", "_received", "_records", "_tcp", "_turns", "finished")

    def __init__(
        self, new_records: Callable[[], RecordLayer], buffers: ReadBuffers, turns: HandshakeTurns, on_done: OnDone
    ) -> None:
        self._new_records = new_records
        self._buffers = buffers
        self._turns = turns
        self._on_done = on_done
        self._records: RecordLayer | None = None
        self._received = b""
        self._tcp: asyncio.Transport | None = None
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin as soon as it is this handshake's turn."""
        self._tcp = cast(asyncio.Transport, transport)
        self._turns.begin(self._step)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes are to be put."""
        return self._buffers.ciphertext

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes to the next step; no more are read before it."""
        assert self._tcp is not None
        self._received += self._buffers.ciphertext[:nbytes]
        self._tcp.pause_reading()
        self._turns.go_on(self._step)

    def eof_received(self) -> bool:
        """Fail, and let the transport close itself."""
        self._fail(ConnectionResetError())
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Fail."""
        self._fail(error or ConnectionResetError())

    def abandon(self) -> None:
        """Close the connection at once; nobody waits for it any more."""
        if not self.finished.cancel() and not self.finished.cancelled():
            self.finished.exception()  # asyncio would log one that nobody has asked for
        if self._tcp is not None:
            self._tcp.abort()

    def _step(self) -> None:
        tcp = self._tcp
        if self.finished.done() or tcp is None or tcp.is_closing():
            return
        received, self._received = self._received, b""
        try:
            if self._records is None:
                self._records = self._new_records()
            rest = self._records.handshake(received)
        except (ssl.SSLError, ValueError) as error:
            self._send()  # an alert, so that the peer can tell its operator why
            tcp.close()
            self._fail(error)
            return
        self._send()
        if received:
            tcp.resume_reading()
        if rest is not None:
            self.finished.set_result(None)
            self._on_done(tcp, self._records, rest)

    def _send(self) -> None:
        if self._records is not None and self._records.outgoing.pending and self._tcp is not None:
            self._tcp.write(self._records.outgoing.read())

    def _fail(self, error: Exception) -> None:
        if not self.finished.done():
            self.finished.set_exception(error)
