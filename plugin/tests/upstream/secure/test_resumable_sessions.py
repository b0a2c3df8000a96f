"""The last session of a peer is kept for a while, for the same name, port and certificates only."""

from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.upstream.secure import resumable_sessions
from opensearch_ml_stream.plugin.upstream.secure.read_buffers import ReadBuffers
from opensearch_ml_stream.plugin.upstream.secure.record_layer import RecordLayer
from opensearch_ml_stream.plugin.upstream.secure.resumable_sessions import Peer, ResumableSessions
from tests.upstream.secure_ends import HOST, agreed, contexts


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
def records(tmp_path: Path) -> RecordLayer:
    records, provider = agreed(*contexts(tmp_path))
    records.decrypt(memoryview(provider.outgoing()), ReadBuffers().plaintext)
    return records


def peer(records: RecordLayer, host: str = HOST, port: int = 443) -> Peer:
    return Peer(records.tls.context, host, port)


def test_a_session_is_for_its_peer(sessions: ResumableSessions, records: RecordLayer, tmp_path: Path) -> None:
    sessions.learn(peer(records), records.tls)
    session = sessions.get(peer(records))
    assert session is not None and session.id == records.tls.session.id  # type: ignore[union-attr]
    assert sessions.get(peer(records, host="other.example")) is None
    assert sessions.get(peer(records, port=8443)) is None
    assert sessions.get(Peer(contexts(tmp_path)[0], HOST, 443)) is None


def test_a_session_without_a_ticket_is_not_kept(sessions: ResumableSessions, tmp_path: Path) -> None:
    records, _ = agreed(*contexts(tmp_path))
    sessions.learn(peer(records), records.tls)
    assert len(sessions) == 0


def test_a_session_is_read_once_a_minute(sessions: ResumableSessions, records: RecordLayer, clock: Clock) -> None:
    sessions.learn(peer(records), records.tls)
    first = sessions.get(peer(records))
    sessions.learn(peer(records), records.tls)
    assert sessions.get(peer(records)) is first
    clock.now += resumable_sessions.RENEW_SECONDS
    sessions.learn(peer(records), records.tls)
    assert sessions.get(peer(records)) is not first


def test_the_certificate_is_asked_for_again_after_a_while(
    sessions: ResumableSessions, records: RecordLayer, clock: Clock
) -> None:
    sessions.learn(peer(records), records.tls)
    clock.now += resumable_sessions.SESSION_SECONDS + 1
    assert sessions.get(peer(records)) is None
    assert len(sessions) == 0


def test_a_resumed_session_does_not_count_as_a_certificate_that_was_seen(
    sessions: ResumableSessions, clock: Clock, tmp_path: Path
) -> None:
    both, buffers = contexts(tmp_path), ReadBuffers()
    records, provider = agreed(*both)
    records.decrypt(memoryview(provider.outgoing()), buffers.plaintext)
    sessions.learn(peer(records), records.tls)
    clock.now += resumable_sessions.SESSION_SECONDS - 1
    resumed, provider = agreed(*both, sessions.get(peer(records)))
    resumed.decrypt(memoryview(provider.outgoing()), buffers.plaintext)
    assert resumed.tls.session_reused
    sessions.learn(peer(records), resumed.tls)
    clock.now += 2
    assert sessions.get(peer(records)) is None


def test_the_least_recently_used_session_is_dropped(
    sessions: ResumableSessions, records: RecordLayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumable_sessions, "MAX_SESSIONS", 2)
    for port in (1, 2):
        sessions.learn(peer(records, port=port), records.tls)
    sessions.get(peer(records, port=1))
    sessions.learn(peer(records, port=3), records.tls)
    assert [sessions.get(peer(records, port=port)) is not None for port in (1, 2, 3)] == [True, False, True]


def test_a_session_can_be_forgotten(sessions: ResumableSessions, records: RecordLayer) -> None:
    sessions.learn(peer(records), records.tls)
    sessions.forget(peer(records))
    sessions.forget(peer(records))
    assert sessions.get(peer(records)) is None
