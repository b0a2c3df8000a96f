"""The last session of a peer is kept for a while, for the same name and certificates only."""

import ssl
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.upstream.http1 import tls_connections
from opensearch_ml_stream.plugin.upstream.http1.tls_connections import Peer, ResumableSessions
from tests.upstream import tls_ends
from tests.upstream.certificates import handshake
from tests.upstream.tls_ends import HOST


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> ResumableSessions:
    return ResumableSessions(clock)


@pytest.fixture
def contexts(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A client's, which trusts the provider, and the provider's."""
    return tls_ends.contexts(tmp_path)


def agreed(contexts: tuple[ssl.SSLContext, ssl.SSLContext], session: ssl.SSLSession | None = None) -> ssl.SSLObject:
    """The client's end after the handshake, and after the tickets that come behind it."""
    client, server = handshake(*contexts, HOST, session)
    server.write(b"data")
    assert client.read(4) == b"data"
    return client


@pytest.fixture
def connection(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> ssl.SSLObject:
    return agreed(contexts)


def peer(connection: ssl.SSLObject, host: str = HOST) -> Peer:
    return Peer(connection.context, host)


def test_a_session_is_for_its_peer(sessions: ResumableSessions, connection: ssl.SSLObject) -> None:
    sessions.learn(peer(connection), connection)
    session = sessions.get(peer(connection))
    assert session is not None and session.id == connection.session.id  # type: ignore[union-attr]
    assert sessions.get(peer(connection, host="other.example")) is None
    assert sessions.get(Peer(ssl.create_default_context(), HOST)) is None


def test_a_session_without_a_ticket_is_not_kept(
    sessions: ResumableSessions, contexts: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    connection, _ = handshake(*contexts, HOST)
    sessions.learn(peer(connection), connection)
    assert len(sessions) == 0


def test_a_session_is_read_once_a_minute(sessions: ResumableSessions, connection: ssl.SSLObject, clock: Clock) -> None:
    sessions.learn(peer(connection), connection)
    first = sessions.get(peer(connection))
    sessions.learn(peer(connection), connection)
    assert sessions.get(peer(connection)) is first
    clock.now += tls_connections.RENEW_SECONDS
    sessions.learn(peer(connection), connection)
    assert sessions.get(peer(connection)) is not first


def test_the_certificate_is_asked_for_again_after_a_while(
    sessions: ResumableSessions, connection: ssl.SSLObject, clock: Clock
) -> None:
    sessions.learn(peer(connection), connection)
    clock.now += tls_connections.SESSION_SECONDS + 1
    assert sessions.get(peer(connection)) is None
    assert len(sessions) == 0


def test_a_resumed_session_does_not_count_as_a_certificate_that_was_seen(
    sessions: ResumableSessions, clock: Clock, contexts: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    connection = agreed(contexts)
    sessions.learn(peer(connection), connection)
    clock.now += tls_connections.SESSION_SECONDS - 1
    resumed = agreed(contexts, sessions.get(peer(connection)))
    assert resumed.session_reused
    sessions.learn(peer(connection), resumed)
    clock.now += 2
    assert sessions.get(peer(connection)) is None


def test_the_least_recently_used_session_is_dropped(
    sessions: ResumableSessions, connection: ssl.SSLObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_connections, "MAX_SESSIONS", 2)
    for host in ("a", "b"):
        sessions.learn(peer(connection, host), connection)
    sessions.get(peer(connection, "a"))
    sessions.learn(peer(connection, "c"), connection)
    assert [sessions.get(peer(connection, host)) is not None for host in "abc"] == [True, False, True]


def test_a_session_can_be_forgotten(sessions: ResumableSessions, connection: ssl.SSLObject) -> None:
    sessions.learn(peer(connection), connection)
    sessions.forget(peer(connection))
    sessions.forget(peer(connection))
    assert sessions.get(peer(connection)) is None
