"""Handshakes are made step by step, one in a round of the loop, and end with what came behind them or the error."""

import asyncio
import ssl
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.upstream.http1.tls_connections import HandshakeSteps
from opensearch_ml_stream.plugin.upstream.http1.tls_records import ReadBuffers
from tests.upstream.tls_ends import Provider, begun, contexts


async def test_a_handshake_reads_nothing_while_its_step_waits(tmp_path: Path) -> None:
    client, server = contexts(tmp_path)
    handshake, records, tcp = begun(client)
    assert tcp.calls == ["pause_reading", "set_protocol"]
    await asyncio.sleep(0)
    assert tcp.calls[-2:] == ["write", "resume_reading"]
    provider = Provider(server)
    provider.feed(tcp.sent())
    tcp.deliver(provider.outgoing())
    assert tcp.calls[-1] == "pause_reading"
    assert await handshake.finish() == b""
    assert records.tls.version() == "TLSv1.3"
    assert tcp.calls[-2:] == ["pause_reading", "write"]  # what comes now is for the transport


async def test_bytes_behind_the_handshake_are_handed_on(tmp_path: Path) -> None:
    client, server = contexts(tmp_path)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    handshake, records, tcp = begun(client)
    finish = asyncio.create_task(handshake.finish())
    provider = Provider(server)
    while not finish.done():
        await asyncio.sleep(0)
        provider.feed(tcp.sent())
        data = provider.outgoing()
        if provider.is_agreed and data:
            data += provider.send(b"early")
        if data:
            tcp.deliver(data)
    rest, plaintext = await finish, ReadBuffers().plaintext
    assert bytes(plaintext[: records.decrypt(memoryview(rest), plaintext)]) == b"early"


async def test_a_certificate_that_is_not_trusted_is_the_error_and_the_provider_is_told(tmp_path: Path) -> None:
    client, server = contexts(tmp_path)
    handshake, _, tcp = begun(client, "elsewhere.example")
    provider = Provider(server)
    await asyncio.sleep(0)
    provider.feed(tcp.sent())
    tcp.deliver(provider.outgoing())
    with pytest.raises(ssl.SSLCertVerificationError):
        await handshake.finish()
    with pytest.raises(ssl.SSLError):
        provider.feed(tcp.sent())
    assert tcp.is_closing()


async def test_bytes_that_are_not_tls_are_an_error(tmp_path: Path) -> None:
    handshake, _, tcp = begun(contexts(tmp_path)[0])
    await asyncio.sleep(0)
    tcp.deliver(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(ssl.SSLError):
        await handshake.finish()


async def test_a_peer_that_hangs_up_has_reset_the_connection(tmp_path: Path) -> None:
    handshake, _, _ = begun(contexts(tmp_path)[0])
    assert not handshake.eof_received()
    with pytest.raises(ConnectionResetError):
        await handshake.finish()
    handshake.connection_lost(None)


@pytest.mark.parametrize("error", [OSError(110, "timed out"), None])
async def test_a_connection_that_breaks_is_the_error(tmp_path: Path, error: OSError | None) -> None:
    handshake, _, _ = begun(contexts(tmp_path)[0])
    handshake.connection_lost(error)
    with pytest.raises(type(error or ConnectionResetError())):
        await handshake.finish()


async def test_a_connection_that_breaks_right_behind_the_handshake_is_an_error(tmp_path: Path) -> None:
    client, server = contexts(tmp_path)
    handshake, records, tcp = begun(client)
    provider = Provider(server)
    await asyncio.sleep(0)
    provider.feed(tcp.sent())
    tcp.deliver(provider.outgoing())
    await asyncio.sleep(0)
    assert records.tls.version() == "TLSv1.3"
    tcp.reset()
    with pytest.raises(ConnectionResetError):
        await handshake.finish()


async def test_a_handshake_on_a_closed_connection_makes_no_step(tmp_path: Path) -> None:
    _, _, tcp = begun(contexts(tmp_path)[0])
    tcp.abort()
    await asyncio.sleep(0)
    assert tcp.written == []


async def test_one_step_is_made_in_a_round_of_the_loop() -> None:
    steps, made = HandshakeSteps(), list[str]()

    def step_with_another() -> None:
        made.append("first")
        steps.make(lambda: made.append("from the first"))

    steps.make(step_with_another)
    steps.make(lambda: made.append("second"))
    seen = []
    for _ in range(4):
        await asyncio.sleep(0)
        seen.append(len(made))
    assert seen == [1, 2, 3, 3]
    assert made == ["first", "second", "from the first"]
    steps.make(lambda: made.append("later"))
    await asyncio.sleep(0)
    assert made[-1] == "later"
