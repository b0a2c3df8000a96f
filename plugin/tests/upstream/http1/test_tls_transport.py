"""A TLS transport tells its protocol what a TCP transport would, and keeps nothing in the shared buffers."""

import asyncio
import ssl
from pathlib import Path

import pytest

from tests.upstream.tls_ends import Connected, Recorder, contexts


@pytest.fixture
def connected(tmp_path: Path) -> Connected:
    return Connected(*contexts(tmp_path))


async def test_the_protocol_gets_its_transport_and_then_the_data(connected: Connected) -> None:
    assert connected.app.events == ["made"] and connected.app.transport is connected.transport
    connected.tcp.deliver(connected.provider.send(b"data"))
    assert bytes(connected.app.received) == b"data"


@pytest.mark.parametrize("piece", [1, 7, 100, 65536])
async def test_a_large_body_comes_through_in_reads_of_any_size(connected: Connected, piece: int) -> None:
    body = bytes(range(256)) * 100
    connected.tcp.deliver(connected.provider.send(body), piece)
    assert bytes(connected.app.received) == body


async def test_what_is_written_reaches_the_provider(connected: Connected) -> None:
    body = bytes(range(256)) * 400
    connected.transport.writelines([b"head", body])
    connected.provider.feed(connected.tcp.sent())
    assert connected.provider.read() == b"head" + body
    connected.tcp.write_buffer_size = 9
    assert connected.transport.get_write_buffer_size() == 9


async def test_one_read_is_handed_on_at_once(connected: Connected) -> None:
    reads: list[bytes] = []
    connected.app.data_received = reads.append  # type: ignore[method-assign,assignment]
    connected.tcp.deliver(b"".join(connected.provider.send(b"event %d" % number) for number in range(9)))
    assert reads == [b"".join(b"event %d" % number for number in range(9))]


async def test_another_protocol_gets_what_comes_from_now_on(connected: Connected) -> None:
    second = Recorder()
    connected.transport.set_protocol(second)
    assert connected.transport.get_protocol() is second
    connected.tcp.deliver(connected.provider.send(b"data"))
    assert (bytes(connected.app.received), bytes(second.received)) == (b"", b"data")


async def test_the_first_data_is_told_of_once(connected: Connected) -> None:
    assert connected.first_data == []
    connected.tcp.deliver(connected.provider.send(b"a"))
    connected.tcp.deliver(connected.provider.send(b"b"))
    assert connected.first_data == [connected.transport.get_extra_info("ssl_object")]
    assert connected.first_data[0].session is not None


async def test_reading_is_paused_on_the_socket(connected: Connected) -> None:
    connected.transport.pause_reading()
    connected.transport.resume_reading()
    assert connected.tcp.calls[-2:] == ["pause_reading", "resume_reading"]


async def test_a_socket_that_does_not_keep_up_is_told_of(connected: Connected) -> None:
    connected.transport.pause_writing()
    connected.transport.resume_writing()
    assert connected.app.events == ["made", "pause", "resume"]


async def test_a_close_notify_is_an_eof_and_is_responded_to(connected: Connected) -> None:
    connected.tcp.sent()
    connected.tcp.deliver(connected.provider.send(b"last") + connected.provider.end())
    assert bytes(connected.app.received) == b"last"
    assert connected.transport.is_closing()
    connected.provider.feed(connected.tcp.sent())
    with pytest.raises(ssl.SSLZeroReturnError):
        connected.provider.tls.read(1)
    await asyncio.sleep(0)
    assert connected.app.events == ["made", "eof", None]


async def test_a_socket_that_closes_without_close_notify_is_no_eof(connected: Connected) -> None:
    connected.tcp.deliver(connected.provider.send(b"data"))
    assert not connected.transport.eof_received()
    connected.transport.connection_lost(None)
    assert connected.app.events == ["made", None]


async def test_a_connection_that_breaks_is_an_error(connected: Connected) -> None:
    connected.tcp.reset()
    await asyncio.sleep(0)
    assert connected.app.events[0] == "made" and isinstance(connected.app.events[1], ConnectionResetError)


async def test_changed_ciphertext_aborts_the_connection_with_the_error(connected: Connected) -> None:
    changed = bytearray(connected.provider.send(b"changed"))
    changed[-1] ^= 1
    connected.tcp.deliver(bytes(changed))
    assert connected.tcp.calls[-1] == "abort"
    await asyncio.sleep(0)
    assert isinstance(connected.app.events[-1], ssl.SSLError)
    assert connected.app.received == b""


async def test_a_closed_transport_says_so_and_drops_what_is_written(connected: Connected) -> None:
    connected.tcp.sent()
    connected.transport.write(b"last")
    connected.transport.close()
    connected.transport.close()
    connected.transport.write(b"dropped")
    connected.provider.feed(connected.tcp.sent())
    assert connected.provider.tls.read(10) == b"last"
    assert connected.provider.tls.read(10) == b""


async def test_an_aborted_transport_hands_nothing_on(connected: Connected) -> None:
    connected.transport.abort()
    assert connected.transport.is_closing() and connected.tcp.calls[-1] == "abort"
    connected.tcp.deliver(connected.provider.send(b"data"))
    assert connected.app.received == b""
    await asyncio.sleep(0)
    assert connected.app.events == ["made", None]


async def test_a_protocol_may_abort_in_the_middle_of_what_has_come(connected: Connected) -> None:
    connected.app.data_received = lambda data: connected.transport.abort()  # type: ignore[method-assign]
    connected.tcp.deliver(connected.provider.send(b"data") + connected.provider.end())
    await asyncio.sleep(0)
    assert connected.app.events == ["made", None]
