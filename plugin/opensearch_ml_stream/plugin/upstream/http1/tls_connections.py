"""TLS connections to providers, by the event loop's TLS.

New connections resume the sessions of earlier ones, and a limited number of handshakes is in progress at a time.
"""

import asyncio
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from opensearch_ml_stream.plugin.upstream.http1.connection import Connection, OpenAt

# In progress at a time. A step of each may come in one round of the loop, and takes up to a millisecond of CPU.
MAX_HANDSHAKES = 16
# A handshake counts for so long at most: peers that do not respond must not keep others waiting.
COUNTED_SECONDS = 1.0
HANDSHAKE_SECONDS = 24 * 3600.0  # the loop's own limit, longer than any connection_timeout

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


class TLSConnector:
    """Opens TLS connections."""

    def __init__(self) -> None:
        self._sessions = ResumableSessions(time.monotonic)
        self._object_class = _resuming(self._sessions)
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
        if connection.tcp is None or connection.tcp.is_closing():  # the peer has hung up meanwhile
            raise ConnectionResetError
        peer.context.sslobject_class = self._object_class
        transport = await connection.loop.start_tls(
            connection.tcp,
            connection,
            peer.context,
            server_hostname=peer.host,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
        )
        if transport is None:  # as above
            raise ConnectionResetError
        connection.transport = transport
        # The tickets of TLS 1.3 come after the handshake, and before the first response.
        connection.on_first_response = partial(self._sessions.learn, peer, transport.get_extra_info("ssl_object"))


def _resuming(sessions: ResumableSessions) -> type[ssl.SSLObject]:
    """Return the class of a client's end of a connection, which offers the peer its last session."""

    class ResumingTLS(ssl.SSLObject):
        _has_begun = False

        def do_handshake(self) -> None:
            if not self._has_begun:
                self._has_begun = True
                if self.server_hostname and (session := sessions.get(Peer(self.context, self.server_hostname))):
                    self.session = session
            super().do_handshake()

    return ResumingTLS
