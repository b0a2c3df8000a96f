"""TLS without a socket: what one end encrypts the other decrypts, however the ciphertext is cut."""

import ctypes
import random
import ssl
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.upstream.http1.tls_records import PIECE_BYTES, ReadBuffers, RecordLayer
from tests.upstream.certificates import issue
from tests.upstream.tls_ends import HOST, Provider, agreed, contexts, server_context

BUFFERS = ReadBuffers()


def decrypt(records: RecordLayer, data: bytes) -> bytes:
    length = records.decrypt(memoryview(data), BUFFERS.plaintext)
    return bytes(BUFFERS.plaintext[:length])


class _MallocInfo(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    )  # fmt: skip


def _allocated_bytes() -> int:
    """What this process has allocated by malloc, as OpenSSL does; Python's small objects are elsewhere."""
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = _MallocInfo
    allocated: int = mallinfo().uordblks
    return allocated


@pytest.fixture(params=[ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["TLS 1.2", "TLS 1.3"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    client, server = contexts(tmp_path)
    client.maximum_version = request.param
    return client, server


def test_both_ends_read_what_the_other_writes(both: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    records, provider = agreed(*both)
    assert decrypt(records, provider.outgoing()) == b""
    provider.feed(records.encrypt(b"request"))
    assert provider.read() == b"request"
    assert decrypt(records, provider.send(b"response")) == b"response"
    assert not records.ended


@pytest.mark.parametrize("length", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 16384, 200_000])
def test_data_of_any_length_comes_through(both: tuple[ssl.SSLContext, ssl.SSLContext], length: int) -> None:
    records, provider = agreed(*both)
    data = random.Random(length).randbytes(length)
    provider.feed(records.encrypt(data))
    assert provider.read() == data
    ciphertext, received = provider.outgoing() + (provider.send(data) if data else b""), b""
    for begin in range(0, len(ciphertext), 65536):
        received += decrypt(records, ciphertext[begin : begin + 65536])
    assert received == data


@pytest.mark.parametrize("seed", range(20))
def test_ciphertext_may_be_cut_anywhere(both: tuple[ssl.SSLContext, ssl.SSLContext], seed: int) -> None:
    records, provider = agreed(*both)
    chance = random.Random(seed)
    sent = [chance.randbytes(chance.choice((1, 30, 300, 5000, 16384, 40000))) for _ in range(20)]
    ciphertext = provider.outgoing() + b"".join(provider.send(data) for data in sent) + provider.end()
    received = b""
    while ciphertext:
        cut = chance.choice((1, 5, 100, PIECE_BYTES, 60_000))
        received += decrypt(records, ciphertext[:cut])
        ciphertext = ciphertext[cut:]
    assert received == b"".join(sent)
    assert records.ended and records.failure is None


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_handshake_may_be_cut_anywhere(tmp_path: Path, cut: int) -> None:
    client, server = contexts(tmp_path)
    records, provider = RecordLayer(client, HOST), Provider(server)
    assert records.handshake(b"") is None
    provider.feed(records.outgoing.read())
    flight, rest = provider.outgoing(), None
    for begin in range(0, len(flight), cut):
        rest = records.handshake(flight[begin : begin + cut])
    assert rest == b""
    provider.feed(records.outgoing.read())
    assert decrypt(records, provider.outgoing() + provider.send(b"data")) == b"data"


def test_data_right_behind_a_handshake_is_not_lost(tmp_path: Path) -> None:
    client, server = contexts(tmp_path)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    records, provider = RecordLayer(client, HOST), Provider(server)
    received = b""
    while True:
        rest = records.handshake(received)
        if rest is not None:
            break
        provider.feed(records.outgoing.read())
        received = provider.outgoing()
        if provider.is_agreed:
            received += provider.send(b"early")
    assert decrypt(records, rest) == b"early"


def test_a_close_notify_is_an_end_and_no_failure(both: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    records, provider = agreed(*both)
    assert decrypt(records, provider.outgoing() + provider.send(b"last") + provider.end() + b"more") == b"last"
    assert (records.ended, records.failure) == (True, None)


def test_changed_ciphertext_is_a_failure_behind_what_was_good(both: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    records, provider = agreed(*both)
    good = provider.outgoing() + provider.send(b"good")
    changed = bytearray(provider.send(b"changed"))
    changed[-1] ^= 1
    assert decrypt(records, good + changed) == b"good"
    assert records.ended and isinstance(records.failure, ssl.SSLError)
    with pytest.raises(ssl.SSLError):
        records.encrypt(b"more")


def test_the_provider_is_told_of_the_end(both: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    records, provider = agreed(*both)
    decrypt(records, provider.outgoing())
    provider.feed(records.close())
    assert provider.tls.read(10) == b""


def test_a_session_ticket_is_taken_in_and_shortens_the_next_handshake(tmp_path: Path) -> None:
    client, server = contexts(tmp_path)
    records, provider = agreed(client, server)
    assert decrypt(records, provider.outgoing() + provider.send(b"data")) == b"data"
    session = records.tls.session
    assert session is not None and session.has_ticket
    for _ in range(2):
        resumed, provider = agreed(client, server, session)
        assert resumed.tls.session_reused
        assert decrypt(resumed, provider.outgoing() + provider.send(b"data")) == b"data"


def test_no_buffer_is_held_for_tickets_that_come_with_data(both: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    connections = [agreed(*both) for _ in range(100)]
    reads = [provider.outgoing() + provider.send(b"data") for _, provider in connections]
    before = _allocated_bytes()
    for (records, _), data in zip(connections, reads, strict=True):
        assert decrypt(records, data) == b"data"
    assert (_allocated_bytes() - before) / len(connections) < 8 * 1024


def test_a_certificate_for_another_name_is_not_trusted(tmp_path: Path) -> None:
    client, server = contexts(tmp_path)
    records, provider = RecordLayer(client, "elsewhere.example"), Provider(server)
    records.handshake(b"")
    provider.feed(records.outgoing.read())
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        records.handshake(provider.outgoing())
    with pytest.raises(ssl.SSLError, match=r"(?i)bad.certificate"):
        provider.feed(records.outgoing.read())


def test_a_host_of_which_no_certificate_can_be_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="idna"):
        RecordLayer(contexts(tmp_path)[0], ".leading.dot")


def test_a_client_certificate_is_shown_to_a_provider_that_asks(tmp_path: Path) -> None:
    authority, client_certificate = issue("authority", authority=True), issue("sidecar")
    server = server_context(tmp_path, issue(HOST, authority), clients_of=client_certificate)
    client = ssl.create_default_context(cadata=authority.pem)
    file = tmp_path / "client.pem"
    file.write_text(client_certificate.pem + client_certificate.key_pem())
    client.load_cert_chain(file)
    _, provider = agreed(client, server)
    assert provider.tls.getpeercert(True) is not None


class Renegotiating:
    """Stands in for the SSLObject while the peer renegotiates: it writes nothing before it has read."""

    def __init__(self) -> None:
        self.is_waiting = True
        self.written = b""

    def write(self, data: bytes) -> int:
        if self.is_waiting:
            raise ssl.SSLWantReadError
        self.written += data
        return len(data)

    def read(self, length: int, buffer: memoryview) -> int:
        raise ssl.SSLWantReadError


def test_what_is_written_in_a_renegotiation_is_sent_behind_it(tmp_path: Path) -> None:
    records, _ = agreed(*contexts(tmp_path))
    tls = Renegotiating()
    records.tls = tls  # type: ignore[assignment]
    data = bytes(range(256)) * 80
    assert records.encrypt(data) + records.encrypt(b"and more") == b""
    assert records.unsent_bytes == len(data) + 8
    assert decrypt(records, b"a message") == b""
    assert tls.written == b""
    tls.is_waiting = False
    assert decrypt(records, b"the last one") == b""
    assert (tls.written, records.unsent_bytes) == (data + b"and more", 0)
