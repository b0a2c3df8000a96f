"""Both ends of TLS connections in memory: the provider's as an SSLObject, ours on a fake TCP transport."""

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path

from opensearch_ml_stream.plugin.upstream.http1.tls_connections import Handshake, HandshakeSteps
from opensearch_ml_stream.plugin.upstream.http1.tls_records import ReadBuffers, RecordLayer
from opensearch_ml_stream.plugin.upstream.http1.tls_transport import TLSTransport
from tests.upstream.certificates import Certificate, issue
from tests.upstream.fake_transport import FakeTransport

HOST = "provider.example"


def server_context(folder: Path, certificate: Certificate, clients_of: Certificate | None = None) -> ssl.SSLContext:
    """What a provider with a certificate uses; with `clients_of` it asks for a client's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    file = folder / "provider.pem"
    file.write_text(certificate.pem + certificate.key_pem())
    context.load_cert_chain(file)
    if clients_of is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients_of.pem)
    return context


def contexts(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A client's that trusts the provider, and the provider's."""
    authority = issue("authority", authority=True)
    return ssl.create_default_context(cadata=authority.pem), server_context(folder, issue(HOST, authority))


class Provider:
    """The provider's end. `feed` takes what we sent and goes on with the handshake; `outgoing` is what it sends."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.is_agreed = False

    def feed(self, data: bytes) -> None:
        self._incoming.write(data)
        if not self.is_agreed:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                return
            self.is_agreed = True

    def read(self) -> bytes:
        """All plaintext that has come."""
        parts = []
        try:
            while data := self.tls.read(65536):
                parts.append(data)
        except ssl.SSLWantReadError:
            pass
        return b"".join(parts)

    def send(self, data: bytes) -> bytes:
        """The ciphertext of data, with what is still to be sent before it."""
        self.tls.write(data)
        return self._outgoing.read()

    def outgoing(self) -> bytes:
        return self._outgoing.read()

    def end(self) -> bytes:
        """A close_notify."""
        with suppress(ssl.SSLError):
            self.tls.unwrap()
        return self._outgoing.read()


def agreed(
    client: ssl.SSLContext, server: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> tuple[RecordLayer, Provider]:
    """Both ends after the handshake; what the provider sends behind it (session tickets) is left in its outgoing."""
    records, provider, received = RecordLayer(client, HOST, session), Provider(server), b""
    for _ in range(10):
        rest = records.handshake(received)
        provider.feed(records.outgoing.read())
        if rest is not None:
            return records, provider
        received = provider.outgoing()
    raise AssertionError("no handshake")


class Recorder(asyncio.Protocol):
    """Keeps what a transport tells it."""

    def __init__(self) -> None:
        self.transport: asyncio.BaseTransport | None = None
        self.received = bytearray()
        self.events: list[object] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.events.append("made")
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def eof_received(self) -> bool:
        self.events.append("eof")
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.events.append(error)

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")


class TCP(FakeTransport):
    """A TCP transport in memory, whose peer is a Provider."""

    def deliver(self, data: bytes, piece: int = 65536) -> None:
        """The provider's bytes arrive, in reads of `piece` bytes at most."""
        for begin in range(0, len(data), piece):
            part = data[begin : begin + piece]
            assert isinstance(self.protocol, asyncio.BufferedProtocol)
            buffer = memoryview(self.protocol.get_buffer(65536))
            buffer[: len(part)] = part
            self.protocol.buffer_updated(len(part))
            buffer[: len(part)] = bytes(len(part))  # another connection reads into it

    def sent(self) -> bytes:
        data = b"".join(self.written)
        self.written.clear()
        return data


class SecureTCP(TCP):
    """A TCP transport in memory, whose provider goes through the handshake and has one response for each write."""

    def __init__(self, protocol: asyncio.BaseProtocol, provider: Provider, response: bytes) -> None:
        super().__init__(protocol)
        self._provider = provider
        self._plaintext = response
        self._is_paused = False
        self._held = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        super().write(data)
        asyncio.get_running_loop().call_soon(self._respond, bytes(data))

    def pause_reading(self) -> None:
        super().pause_reading()
        self._is_paused = True

    def resume_reading(self) -> None:
        super().resume_reading()
        self._is_paused = False
        asyncio.get_running_loop().call_soon(self._deliver_held)

    def _respond(self, data: bytes) -> None:
        with suppress(ssl.SSLError):  # an alert
            self._provider.feed(data)
            if self._provider.is_agreed and self._provider.read():
                self._held += self._provider.send(self._plaintext)
        self._held += self._provider.outgoing()
        self._deliver_held()

    def _deliver_held(self) -> None:
        if self._held and not self._is_paused and not self.is_closing():
            held, self._held = self._held, b""
            self.deliver(held)


class Connected:
    """A TLSTransport on a TCP transport in memory, with its protocol and the provider, after the handshake."""

    def __init__(self, client: ssl.SSLContext, server: ssl.SSLContext) -> None:
        records, self.provider = agreed(client, server)
        self.app = Recorder()
        self.tcp = TCP(asyncio.Protocol())
        self.first_data: list[ssl.SSLObject] = []
        self.transport = TLSTransport(self.tcp, records, ReadBuffers(), self.app, self.first_data.append)
        self.transport.start(self.provider.outgoing())


def begun(client: ssl.SSLContext, host: str = HOST) -> tuple[Handshake, RecordLayer, TCP]:
    """A handshake that has begun on a TCP transport in memory."""
    tcp, records = TCP(asyncio.Protocol()), RecordLayer(client, host)
    handshake = Handshake(tcp, records, ReadBuffers(), HandshakeSteps())
    handshake.begin()
    return handshake, records, tcp
