"""What the store makes of a cluster that refuses, fails, or is guarded by TLS; the cluster's responses are canned."""

import base64
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from integration_tests.support.stores import free_port

from opensearch_ml_stream.connectors.errors import MLStreamError, Unavailable
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.plugin.store.open_store import open_store


@dataclass(slots=True)
class Cluster:
    """Gives every request the same response, and keeps the requests."""

    status: int = 200
    body: str = '{"version": {"number": "3.6.0"}}'  # as `GET /` has it
    content_type: str = "application/json"
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    port: int = field(default_factory=free_port)

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append((request.method, request.path, request.headers.get("Authorization")))
        return web.Response(status=self.status, text=self.body, content_type=self.content_type)

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[None]:
        runner = web.ServerRunner(web.Server(self.respond))
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", self.port, ssl_context=tls).start()
            yield
        finally:
            await runner.cleanup()

    @asynccontextmanager
    async def store(self) -> AsyncIterator[Store]:
        async with self.running(), open_store(f"http://ann:pa%3Ass@127.0.0.1:{self.port}") as store:
            yield store


@pytest.mark.parametrize(
    ("status", "named"),
    [(401, "user and password"), (403, "permission"), (429, "429"), (500, "500"), (502, "502"), (503, "503")],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.get(Index.MODEL, "m"),
        lambda store: store.changed(Index.MODEL, "m", 0, 1),
        lambda store: store.search(Index.MODEL, {}),
        lambda store: store.put(Index.MODEL, "m", {"name": "sk-secret"}),
        lambda store: store.delete(Index.MODEL, "m"),
        lambda store: store.run_painless("return 1", {"text": "sk-secret"}),
        lambda store: store.ping(),
    ],
)
async def test_a_cluster_that_refuses_or_fails_is_an_unavailable_store_after_one_request(
    status: int, named: str, call: Callable[[Store], Awaitable[object]]
) -> None:
    cluster = Cluster(status, '{"error": {"type": "some_exception", "reason": "sk-secret"}, "status": 500}')
    async with cluster.store() as store:
        with pytest.raises(Unavailable, match=named) as caught:
            await call(store)
    assert "sk-secret" not in caught.value.reason and "pa:ss" not in caught.value.reason
    assert len(cluster.requests) == 1


async def test_a_server_that_is_no_opensearch_is_named_as_such() -> None:
    async with Cluster(body="<html>", content_type="text/html").store() as store:
        with pytest.raises(MLStreamError, match="does not respond as OpenSearch"):
            await store.get(Index.MODEL, "m")


async def test_the_user_and_password_of_the_url_are_sent() -> None:
    cluster = Cluster()
    async with cluster.store() as store:
        await store.ping()
    sent = {authorization for _, _, authorization in cluster.requests}
    assert sent == {f"Basic {base64.b64encode(b'ann:pa:ss').decode()}"}


async def test_a_path_in_the_url_comes_before_every_request() -> None:
    cluster = Cluster()
    async with cluster.running(), open_store(f"http://127.0.0.1:{cluster.port}/search/") as store:
        await store.ping()
    assert cluster.requests[0][1] == "/search/"


async def test_a_certificate_is_checked_unless_that_is_turned_off(tmp_path: Path) -> None:
    certificate, tls = _self_signed(tmp_path)
    cluster = Cluster()
    url = f"https://127.0.0.1:{cluster.port}"
    async with cluster.running(tls):
        async with open_store(url) as store:
            with pytest.raises(Unavailable, match=r"certificate verify failed.*ca_certs=PATH"):
                await store.ping()
        async with open_store(f"{url}?verify_certs=false") as store:
            await store.ping()
        async with open_store(f"{url}?ca_certs={certificate}") as store:
            await store.ping()
    assert len(cluster.requests) == 2 * 2  # a ping looks at the server, and at its indices


def _self_signed(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate for 127.0.0.1, and a server's TLS context with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    certificate_path, key_path = folder / "certificate.pem", folder / "key.pem"
    certificate_path.write_bytes(certificate.public_bytes(Encoding.PEM))
    key_path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_path, key_path)
    return certificate_path, context


async def test_what_one_host_takes_no_connection_for_goes_to_the_next() -> None:
    """Writes too: nothing was sent to the first."""
    cluster = Cluster(body='{"_id": "m", "result": "created", "_seq_no": 0, "_primary_term": 1, "_version": 1}')
    async with cluster.running():
        url = f"http://127.0.0.1:{free_port()},http://127.0.0.1:{cluster.port}"
        for _ in range(2):
            async with open_store(url) as store:
                await store.put(Index.MODEL, "m", {"name": "n"})
