"""TLS towards providers: verified unless the connector says otherwise, with the connector's own certificates."""

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from integration_tests.support.certificates import Certificate, new_authority
from integration_tests.support.fake_provider import FakeProvider, openai_stream
from integration_tests.upstream.calls import RawServer, post, read_to_end

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.plugin.upstream import Upstream

UNVERIFIED = ClientConfig(connection_timeout=30, read_timeout=30, skip_ssl_verification=True)
MUTUAL = ClientConfig(connection_timeout=30, read_timeout=30, mutual_tls_enabled=True)
MUTUAL_PKCS12 = ClientConfig(connection_timeout=30, read_timeout=30, mutual_tls_enabled=True, keystore_type="PKCS12")


@pytest.fixture(scope="module")
def authority() -> Certificate:
    return new_authority()


@pytest.fixture(scope="module")
def client(authority: Certificate) -> Certificate:
    return authority.issue("sidecar")


def pem(client: Certificate, authority: Certificate) -> dict[str, str]:
    return {
        "client_cert_pem": client.certificate_pem,
        "client_key_pem": client.key_pem,
        "ca_cert_pem": authority.certificate_pem,
        "openAI_key": "unused",
    }


async def call(upstream: Upstream, url: str, config: ClientConfig, credential: dict[str, str]) -> bytes:
    async with upstream.open(post(url), config, credential, "connector") as response:
        return await read_to_end(response)


async def test_an_unknown_authority_is_refused(upstream: Upstream, authority: Certificate, tmp_path: Path) -> None:
    async with FakeProvider(openai_stream(["a"]), authority.issue("localhost").server_context(tmp_path)) as provider:
        with pytest.raises(UpstreamError, match="is not trusted") as raised:
            await call(upstream, provider.url, ClientConfig(), {})
    assert f"localhost:{provider.port}" in raised.value.reason
    assert provider.requests == []


async def test_verification_can_be_switched_off_for_a_connector(
    upstream: Upstream, authority: Certificate, tmp_path: Path
) -> None:
    async with FakeProvider(openai_stream(["a"]), authority.issue("localhost").server_context(tmp_path)) as provider:
        for _ in range(2):
            assert b"[DONE]" in await call(upstream, provider.url, UNVERIFIED, {})
        assert provider.connections == 1
        with pytest.raises(UpstreamError):  # the verified way does not use the other one's connection
            await call(upstream, provider.url, ClientConfig(), {})


async def test_a_certificate_for_another_host_is_refused(
    upstream: Upstream, authority: Certificate, client: Certificate, tmp_path: Path
) -> None:
    async with FakeProvider(openai_stream(["a"]), authority.issue("elsewhere").server_context(tmp_path)) as provider:
        with pytest.raises(UpstreamError, match="is not trusted"):
            await call(upstream, provider.url, MUTUAL, pem(client, authority))


async def test_mutual_tls_works_with_pem_credentials(
    upstream: Upstream, authority: Certificate, client: Certificate, tmp_path: Path
) -> None:
    tls = authority.issue("localhost").server_context(tmp_path, clients_of=authority)
    async with FakeProvider(openai_stream(["a"]), tls) as provider:
        assert b"[DONE]" in await call(upstream, provider.url, MUTUAL, pem(client, authority))


async def test_mutual_tls_works_with_a_pkcs12_bundle(
    upstream: Upstream, authority: Certificate, client: Certificate, tmp_path: Path
) -> None:
    bundle = pkcs12.serialize_key_and_certificates(
        b"sidecar", client.key, client.certificate, None, BestAvailableEncryption(b"word")
    )
    credential = {
        "client_cert_pkcs12": base64.b64encode(bundle).decode(),
        "keystore_password": "word",
        "ca_cert_pem": authority.certificate_pem,
    }
    tls = authority.issue("localhost").server_context(tmp_path, clients_of=authority)
    async with FakeProvider(openai_stream(["a"]), tls) as provider:
        assert b"[DONE]" in await call(upstream, provider.url, MUTUAL_PKCS12, credential)
        with pytest.raises(InvalidRequest, match="cannot be read"):
            await call(upstream, provider.url, MUTUAL_PKCS12, {**credential, "keystore_password": "wrong"})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"client_key_pem": ""}, r"needs the credential \[client_key_pem\]"),
        ({"client_key_pem": "no key"}, "cannot be read"),
        ({"client_key_pem": new_authority().key_pem}, "belong together"),
        ({"ca_cert_pem": "no certificate"}, "cannot be read"),
    ],
)
async def test_credentials_that_cannot_be_used_are_the_connectors_fault(
    upstream: Upstream, authority: Certificate, client: Certificate, change: dict[str, str], text: str
) -> None:
    with pytest.raises(InvalidRequest, match=text) as raised:
        await call(upstream, "https://127.0.0.1:9/", MUTUAL, {**pem(client, authority), **change})
    assert "PRIVATE" not in raised.value.reason


async def test_a_port_that_does_not_speak_tls_is_an_error(upstream: Upstream) -> None:
    async with RawServer(b"SSH-2.0-OpenSSH_9.6\r\n") as server:
        with pytest.raises(UpstreamError, match=f"127.0.0.1:{server.port}") as raised:
            await call(upstream, f"https://127.0.0.1:{server.port}/", UNVERIFIED, {})
    assert raised.value.status == 424


async def test_a_provider_that_hangs_up_in_the_handshake_is_an_error(upstream: Upstream) -> None:
    async with RawServer(b"") as server:
        with pytest.raises(UpstreamError, match=f"127.0.0.1:{server.port}") as raised:
            await call(upstream, f"https://127.0.0.1:{server.port}/", UNVERIFIED, {})
    assert raised.value.status == 424
