"""Connections before their handshake is over: silent ones, too many, and clients that do not speak TLS."""

import asyncio
from pathlib import Path
from typing import cast

import pytest
from uvicorn.server import ServerState

from opensearch_ml_stream.plugin.key_pairs import read_files
from opensearch_ml_stream.plugin.server.http1.limits import ConnectionLimits
from opensearch_ml_stream.plugin.server.http1.protocol import SharedState
from opensearch_ml_stream.plugin.server.http1.tls_handshake import TLSHandshake
from opensearch_ml_stream.plugin.server.port_certificate import PortCertificate, create_certificate
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory
from tests.server.client_connection import Bodies, settle
from tests.upstream.certificates import issue
from tests.upstream.fake_transport import FakeTransport

HELLO = b"\x16\x03\x01\x02\x00"


class Port:
    """A port that speaks TLS, and the connections of its clients in memory."""

    def __init__(self, certificate: PortCertificate, most: int = 10) -> None:
        self.warnings: list[str] = []
        self.state = ServerState()
        limits = ConnectionLimits(max_connections=most, head_seconds=10)
        self._shared = SharedState(Bodies(), self.state, limits, BodyMemory(1000, 1000), self.warnings.append)
        self._certificate = certificate

    def connect(self) -> tuple[TLSHandshake, FakeTransport]:
        handshake = TLSHandshake(self._shared, asyncio.get_running_loop(), self._certificate.context)
        transport = FakeTransport(handshake)
        handshake.connection_made(cast(asyncio.Transport, transport))
        return handshake, transport


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> PortCertificate:
    own = issue("ml.example")
    path = Path(tmp_path_factory.mktemp("tls")) / "cert.pem"
    path.write_text(own.pem + own.key_pem())
    settings = Settings(tls_certificate=str(path))
    return create_certificate(settings, read_files([str(path)]))


async def test_a_silent_client_has_the_time_of_a_requests_head(certificate: PortCertificate) -> None:
    port = Port(certificate)
    handshake, transport = port.connect()
    now = asyncio.get_running_loop().time()
    handshake.check_deadlines(now + 9)
    assert not transport.is_closing()
    handshake.check_deadlines(now + 11)
    await settle()
    assert transport.is_closing()
    assert port.state.connections == set()


async def test_connections_without_a_handshake_count_among_the_open_ones(certificate: PortCertificate) -> None:
    port = Port(certificate, most=1)
    _, first = port.connect()
    _, second = port.connect()
    assert (first.is_closing(), second.is_closing()) == (False, True)
    assert port.warnings == ["1 clients are connected, which is the limit; new connections are closed"]


@pytest.mark.parametrize(("sent", "answer"), [(b"GET / HTTP/1.1\r\n", b"HTTP/1.1 400 "), (b"\x00", b"")])
async def test_a_client_that_does_not_speak_tls_is_turned_away(
    certificate: PortCertificate, sent: bytes, answer: bytes
) -> None:
    port = Port(certificate)
    _, transport = port.connect()
    transport.receive(sent)
    assert b"".join(transport.written)[:13] == answer
    assert transport.is_closing()
    assert len(port.warnings) == 1


async def test_a_client_that_is_gone_before_its_handshake_is_forgotten(certificate: PortCertificate) -> None:
    port = Port(certificate)
    _, transport = port.connect()
    transport.receive(HELLO)
    transport.close()
    await settle()
    assert port.state.connections == set()
    assert port.state.tasks == set()
    assert port.warnings == []


async def test_a_stop_closes_connections_without_a_handshake(certificate: PortCertificate) -> None:
    handshake, transport = Port(certificate).connect()
    handshake.shutdown()
    assert transport.is_closing()
