"""ResumableSessions: TLS sessions of earlier connections, by which new ones are opened with half the work."""

import ssl
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

MAX_SESSIONS = 256  # a session takes some 6 KiB
# A resumed session is not asked for its certificate again: an expired one is noticed after this.
SESSION_SECONDS = 600.0
RENEW_SECONDS = 60.0  # reading a session costs some 100 microseconds, which not every connection need spend


@dataclass(frozen=True, slots=True)
class Peer:
    """With whom a session was agreed, and by which certificates and checks."""

    context: ssl.SSLContext
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class _Kept:
    session: ssl.SSLSession
    verified_at: float
    kept_at: float


class ResumableSessions:
    """The last session of each peer, at most MAX_SESSIONS; the least recently used is dropped first.

    A session is used for more than one connection: that shows who listens that they come from the same client, which
    the addresses of a server show anyway.
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
        """Drop the session of a peer, which did not like it."""
        self._kept.pop(peer, None)


def _is_resumable(session: ssl.SSLSession, version: str | None) -> bool:
    return session.has_ticket or (version != "TLSv1.3" and bool(session.id))
