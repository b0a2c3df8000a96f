"""TLS connections to providers.

The connections of a worker share one read buffer, where the event loop's TLS keeps one for each. New connections resume
the sessions of earlier ones. Of handshakes a limited number is in progress at a time, and one step is made in a round
of the loop, so that a burst of new connections stalls no stream.
"""

import asyncio
import ssl
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from opensearch_ml_stream.plugin.upstream.http1.connection import Connection, OpenAt
from opensearch_ml_stream.plugin.upstream.http1.tls_records import ReadBuffers, RecordLayer
from opensearch_ml_stream.plugin.upstream.http1.tls_transport import TLSTransport

MAX_HANDSHAKES = 16  # in progress at a time: each holds memory, and delays the steps of the others
# A handshake counts for so long at most: peers that do not respond must not keep others waiting.
COUNTED_SECONDS = 1.0

MAX_SESSIONS = 256  # a session takes some 6 KiB
# The certificate of a resumed session is not checked again: one that has expired is noticed after this.
SESSION_SECONDS = 600.0
RENEW_SECONDS = 60.0  # reading a session costs some 100 microseconds, which not every connection need spend


@dataclass(frozen=True, slots=True)
class Peer:
    """The server of a session, and the context that has the certificates and checks by which it was agreed."""

    context: ssl.SSLContext
    host: str


@dataclass(frozen=True, slots=True)
class _Kept:
    session: ssl.SSLSession
    verified_at: float
    kept_at: float


class ResumableSessions:
    """The last session of each peer, at most MAX_SESSIONS; the least recently used is dropped first.

    A session is used for several connections. Who listens can tell by it that they come from one client, as by the
    client's address.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: OrderedDict[Peer, _Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, peer: Peer) -> ssl.SSLSession | None:
        """Return a session to resume, or None."""
        kept = self._kept.get(peer)
        if kept is None:
            return None
        if self._clock() - kept.verified_at > SESSION_SECONDS:
            del self._kept[peer]
            return None
        self._kept.move_to_end(peer)
        return kept.session

    def learn(self, peer: Peer, connection: ssl.SSLObject) -> None:
        """Keep the session of a connection on which data has come, if it is newer than the kept one and resumable.

        Data is waited for as TLS 1.3 has its tickets sent after the handshake.
        """
        now = self._clock()
        kept = self._kept.get(peer)
        if kept is not None and now - kept.kept_at < RENEW_SECONDS:
            return
        session = connection.session
        if session is None or not _is_resumable(session, connection.version()):
            return
        verified_at = kept.verified_at if kept is not None and connection.session_reused else now
        self._kept[peer] = _Kept(session, verified_at, now)
        self._kept.move_to_end(peer)
        if len(self._kept) > MAX_SESSIONS:
            self._kept.popitem(last=False)

    def forget(self, peer: Peer) -> None:
        """Drop the session of a peer that may have refused it."""
        self._kept.pop(peer, None)


def _is_resumable(session: ssl.SSLSession, version: str | None) -> bool:
    return session.has_ticket or (version != "TLSv1.3" and bool(session.id))


class HandshakeSteps:
    """Steps of handshakes, of which one is made in a round of the event loop: it takes up to a millisecond of CPU."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def make(self, step: Callable[[], None]) -> None:
        """Make a step after those that wait."""
        self._waiting.append(step)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._make_next)

    def _make_next(self) -> None:
        if len(self._waiting) > 1:
            asyncio.get_running_loop().call_soon(self._make_next)
        self._waiting.popleft()()


class Handshake(asyncio.BufferedProtocol):
    """The protocol of a TCP transport until TLS is agreed on it. Reading is paused while a step waits, and at the end.

    `begin` comes first, once, then `finish`.
    """

    __slots__ = ("_buffers", "_outcome", "_received", "_records", "_steps", "_tcp")

    def __init__(
        self, tcp: asyncio.Transport, records: RecordLayer, buffers: ReadBuffers, steps: HandshakeSteps
    ) -> None:
        self._tcp = tcp
        self._records = records
        self._buffers = buffers
        self._steps = steps
        self._received = b""
        self._outcome: asyncio.Future[bytes | Exception] = asyncio.get_running_loop().create_future()

    def begin(self) -> None:
        """Take over the transport, which is not closed."""
        self._tcp.pause_reading()
        self._tcp.set_protocol(self)
        self._steps.make(self._step)

    async def finish(self) -> bytes:
        """Return the bytes behind the handshake. ssl.SSLError if it fails, OSError if the connection ends before."""
        outcome = await self._outcome
        if isinstance(outcome, Exception):
            raise outcome
        if self._tcp.is_closing():
            raise ConnectionResetError
        return outcome

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes are to be put."""
        return self._buffers.ciphertext

    def buffer_updated(self, nbytes: int) -> None:
        """Keep bytes for the next step."""
        self._received = bytes(self._buffers.ciphertext[:nbytes])
        self._tcp.pause_reading()
        self._steps.make(self._step)

    def eof_received(self) -> bool:
        """Fail, and let the transport close itself."""
        self._end(ConnectionResetError())
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Fail."""
        self._end(error or ConnectionResetError())

    def _step(self) -> None:
        if self._outcome.done() or self._tcp.is_closing():
            return
        received, self._received = self._received, b""
        try:
            rest = self._records.handshake(received)
        except ssl.SSLError as error:
            self._send()  # an alert, so that the peer can tell its operator why
            self._tcp.close()
            self._end(error)
            return
        self._send()
        if rest is not None:
            self._end(rest)
        elif not self._tcp.is_closing():
            self._tcp.resume_reading()

    def _send(self) -> None:
        if self._records.outgoing.pending:
            self._tcp.write(self._records.outgoing.read())

    def _end(self, outcome: bytes | Exception) -> None:
        if not self._outcome.done():
            self._outcome.set_result(outcome)


class TLSConnector:
    """Opens TLS connections."""

    def __init__(self) -> None:
        self._sessions = ResumableSessions(time.monotonic)
        self._buffers = ReadBuffers()
        self._steps = HandshakeSteps()
        self._handshakes = asyncio.Semaphore(MAX_HANDSHAKES)

    async def open(
        self, context: ssl.SSLContext, host: str, open_tcp: OpenAt, connection: Connection, address: str
    ) -> None:
        """Open a connection to an address by `open_tcp`, and TLS on it, with a peer whose certificate is for the host.

        OSError if the connection cannot be opened: ssl.SSLError if it is TLS that fails.
        """
        peer = Peer(context, host)
        has_session = self._sessions.get(peer) is not None
        try:
            await self._open(peer, open_tcp, connection, address)
        except (ConnectionResetError, ssl.SSLError):
            if not has_session:
                raise
            connection.abort()
            self._sessions.forget(peer)  # which may be what the peer refused
            await self._open(peer, open_tcp, connection, address)

    async def _open(self, peer: Peer, open_tcp: OpenAt, connection: Connection, address: str) -> None:
        await open_tcp(connection, address)
        await self._handshakes.acquire()
        with ExitStack() as counted:
            counted.callback(self._handshakes.release)
            timer = connection.loop.call_later(COUNTED_SECONDS, counted.close)
            counted.callback(timer.cancel)
            await self._handshake(peer, connection)

    async def _handshake(self, peer: Peer, connection: Connection) -> None:
        tcp = connection.transport
        if tcp is None or tcp.is_closing():  # the peer has hung up meanwhile
            raise ConnectionResetError
        records = RecordLayer(peer.context, peer.host, self._sessions.get(peer))
        handshake = Handshake(tcp, records, self._buffers, self._steps)
        handshake.begin()
        received = await handshake.finish()
        TLSTransport(tcp, records, self._buffers, connection, partial(self._sessions.learn, peer)).start(received)
