"""Handshakes go step by step, each in its turn, and end with a transport's records or the error."""

import asyncio
import ssl
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.upstream.secure.handshake_turns import HandshakeTurns
from opensearch_ml_stream.plugin.upstream.secure.read_buffers import ReadBuffers
from tests.upstream.secure_ends import Provider, contexts, handshake


async def test_a_handshake_reads_no_further_before_its_step_is_done(tmp_path: Path) -> None:
    client, server = contexts(tmp_path)
    agreement, tcp, done = handshake(client)
    assert tcp.written == []  # it is not its turn yet
    await asyncio.sleep(0)
    provider = Provider(server)
    provider.feed(tcp.sent())
    tcp.deliver(provider.outgoing())
    assert tcp.calls[-1] == "pause_reading" and not done
    await asyncio.sleep(0)
    assert "resume_reading" in tcp.calls
    await agreement.finished
    [(records, rest)] = done
    assert rest == b"" and records.tls.version() == "TLSv1.3"


async def test_bytes_behind_the_handshake_are_handed_on(tmp_path: Path) -> None:
    client, server = contexts(tmp_path)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    agreement, tcp, done = handshake(client)
    provider = Provider(server)
    while not done:
        await asyncio.sleep(0)
        provider.feed(tcp.sent())
        data = provider.outgoing()
        if provider.is_agreed and data:
            data += provider.send(b"early")
        if data:
            tcp.deliver(data)
    await agreement.finished
    [(records, rest)], plaintext = done, ReadBuffers().plaintext
    assert bytes(plaintext[: records.decrypt(memoryview(rest), plaintext)]) == b"early"


async def test_a_certificate_that_is_not_trusted_is_the_error_and_the_provider_is_told(tmp_path: Path) -> None:
    client, server = contexts(tmp_path)
    agreement, tcp, done = handshake(client, "elsewhere.example")
    provider = Provider(server)
    await asyncio.sleep(0)
    provider.feed(tcp.sent())
    tcp.deliver(provider.outgoing())
    with pytest.raises(ssl.SSLCertVerificationError):
        await agreement.finished
    with pytest.raises(ssl.SSLError):
        provider.feed(tcp.sent())
    assert tcp.is_closing() and not done


async def test_bytes_that_are_not_tls_are_an_error(tmp_path: Path) -> None:
    agreement, tcp, _ = handshake(contexts(tmp_path)[0])
    await asyncio.sleep(0)
    tcp.deliver(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(ssl.SSLError):
        await agreement.finished


async def test_a_peer_that_hangs_up_has_reset_the_connection(tmp_path: Path) -> None:
    agreement, _, _ = handshake(contexts(tmp_path)[0])
    assert not agreement.eof_received()
    with pytest.raises(ConnectionResetError):
        await agreement.finished
    agreement.connection_lost(None)


@pytest.mark.parametrize("error", [OSError(110, "timed out"), None])
async def test_a_connection_that_breaks_is_the_error(tmp_path: Path, error: OSError | None) -> None:
    agreement, _, _ = handshake(contexts(tmp_path)[0])
    agreement.connection_lost(error)
    with pytest.raises(type(error or ConnectionResetError())):
        await agreement.finished


async def test_a_host_of_which_no_certificate_can_be_is_an_error(tmp_path: Path) -> None:
    agreement, _, _ = handshake(contexts(tmp_path)[0], ".leading.dot")
    with pytest.raises(ValueError, match="idna"):
        await agreement.finished


async def test_an_abandoned_handshake_takes_no_turn(tmp_path: Path) -> None:
    agreement, tcp, done = handshake(contexts(tmp_path)[0])
    agreement.abandon()
    await asyncio.sleep(0)
    assert tcp.calls == ["abort"] and agreement.finished.cancelled() and not done


async def test_one_step_is_done_in_a_round_of_the_loop_and_those_that_go_on_come_first() -> None:
    turns, done = HandshakeTurns(), list[str]()
    turns.begin(lambda: done.append("a begins"))
    turns.begin(lambda: done.append("b begins"))
    turns.go_on(lambda: done.append("c goes on"))
    seen = []
    for _ in range(4):
        await asyncio.sleep(0)
        seen.append(len(done))
    assert seen == [1, 2, 3, 3]
    assert done == ["c goes on", "a begins", "b begins"]
    turns.begin(lambda: done.append("later"))
    await asyncio.sleep(0)
    assert done[-1] == "later"
