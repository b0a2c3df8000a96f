"""Connections to providers verify the server, and show a client certificate where the connector has one."""

import asyncio
import base64
import ssl
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import x25519
from cryptography.hazmat.primitives.serialization import pkcs12

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import InvalidRequest, Unavailable
from opensearch_ml_stream.plugin.upstream import tls_contexts
from opensearch_ml_stream.plugin.upstream.tls_contexts import PLAIN, UNVERIFIED, TLSContexts, TLSKey, tls_key
from tests.descriptors import without_descriptors
from tests.upstream.certificates import Certificate, handshake, issue

HOST = "provider.example"
URL = f"https://{HOST}/v1"
AUTHORITY = issue("authority", authority=True)
INTERMEDIATE = issue("intermediate", AUTHORITY, authority=True)
SERVER = issue(HOST, AUTHORITY)
CLIENT = issue("client", INTERMEDIATE)
CHAIN = CLIENT.pem + INTERMEDIATE.pem
PEM_CREDENTIAL = {"client_cert_pem": CHAIN, "client_key_pem": CLIENT.key_pem()}
MISSING = "Mutual TLS needs the credential"


def server_context(folder: Path, certificate: Certificate = SERVER, *, mutual: bool = False) -> ssl.SSLContext:
    file = folder / "server.pem"
    file.write_text(certificate.key_pem() + certificate.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    if mutual:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=AUTHORITY.pem)
    return context


def mutual_key(keystore: str, credential: Mapping[str, str]) -> TLSKey:
    config = ClientConfig(mutual_tls_enabled=True, keystore_type=keystore)
    return tls_key(URL, config, {"ca_cert_pem": AUTHORITY.pem, **credential})


@pytest.mark.parametrize(
    ("config", "key"),
    [
        (ClientConfig(), (False, "", (("ca_cert_pem", "c"),))),
        (ClientConfig(keystore_type="PKCS12"), (False, "", (("ca_cert_pem", "c"),))),
        (ClientConfig(skip_ssl_verification=True), UNVERIFIED),
        (ClientConfig(mutual_tls_enabled=True), (False, "PEM", (("client_key_pem", "k"), ("ca_cert_pem", "c")))),
        (
            ClientConfig(mutual_tls_enabled=True, keystore_type="PKCS12"),
            (False, "PKCS12", (("client_key_pem", "k"), ("ca_cert_pem", "c"))),
        ),
    ],
)
def test_what_makes_a_difference_for_tls_is_in_the_key(config: ClientConfig, key: TLSKey) -> None:
    assert (PLAIN, UNVERIFIED) == ((False, "", ()), (True, "", ()))
    credential = {"ca_cert_pem": "c", "api_key": "secret", "client_key_pem": "k", "client_cert_pem": ""}
    assert tls_key(URL, config, credential) == key
    assert tls_key(URL, ClientConfig(), {"api_key": "secret", "client_key_pem": "k"}) == PLAIN


@pytest.mark.parametrize(
    ("url", "config", "reason"),
    [
        (
            "http://h:1/a?key=secret",
            ClientConfig(mutual_tls_enabled=True),
            r"cannot be used with the cleartext endpoint \[http://h:1\]: .* needs a url that begins with https://$",
        ),
        (" HTTP://h", ClientConfig(mutual_tls_enabled=True), r"the cleartext endpoint \[HTTP://h\]"),
        (
            URL,
            ClientConfig(mutual_tls_enabled=True, skip_ssl_verification=True),
            "^client_config.skip_ssl_verification cannot be enabled together with mutual_tls_enabled",
        ),
    ],
)
def test_mutual_tls_that_would_be_none_is_refused(url: str, config: ClientConfig, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        tls_key(url, config, PEM_CREDENTIAL)


def test_without_mutual_tls_a_url_may_be_in_clear() -> None:
    assert tls_key("http://h", ClientConfig(skip_ssl_verification=True), {"ca_cert_pem": "c"}) == PLAIN


def test_every_credential_of_mutual_tls_is_in_the_key() -> None:
    names = ("client_cert_pem", "client_key_pem", "client_cert_pkcs12", "ca_cert_pem", "keystore_password")
    key = tls_key(URL, ClientConfig(mutual_tls_enabled=True), {name: name for name in names})
    assert key[2] == tuple((name, name) for name in names)


async def test_a_context_verifies_host_and_certificate_unless_that_is_skipped() -> None:
    contexts = TLSContexts()
    verifying, skipping = await contexts.get(PLAIN), await contexts.get(UNVERIFIED)
    assert (verifying.check_hostname, verifying.verify_mode) == (True, ssl.CERT_REQUIRED)
    assert (skipping.check_hostname, skipping.verify_mode) == (False, ssl.CERT_NONE)
    assert verifying.cert_store_stats()["x509_ca"] > 0


async def test_a_context_without_authorities_as_no_descriptor_is_left_is_an_error_and_not_kept() -> None:
    contexts = TLSContexts()
    with (
        without_descriptors(),
        pytest.raises(Unavailable, match="cannot be prepared on this machine: Too many open files"),
    ):
        await contexts.get(PLAIN)
    assert (await contexts.get(PLAIN)).cert_store_stats()["x509_ca"] > 0


async def test_a_context_for_which_no_thread_can_be_started_is_an_error_and_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    contexts = TLSContexts()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(Unavailable, match="can't start new thread"):
            await contexts.get(PLAIN)
    assert (await contexts.get(PLAIN)).verify_mode == ssl.CERT_REQUIRED


def no_thread(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


async def test_a_server_that_no_authority_has_signed_is_refused_unless_that_is_skipped(tmp_path: Path) -> None:
    contexts = TLSContexts()
    server = server_context(tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(await contexts.get(PLAIN), server, HOST)
    handshake(await contexts.get(UNVERIFIED), server, "another.example")


async def test_http_1_1_is_what_is_offered(tmp_path: Path) -> None:
    server = server_context(tmp_path)
    server.set_alpn_protocols(["h2", "http/1.1"])
    client, _ = handshake(await TLSContexts().get(UNVERIFIED), server, HOST)
    assert client.selected_alpn_protocol() == "http/1.1"


@pytest.mark.parametrize(
    ("keystore", "credential"),
    [
        ("PEM", PEM_CREDENTIAL),
        ("PEM", {"client_cert_pem": CHAIN, "client_key_pem": CLIENT.key_pem("p"), "keystore_password": "p"}),
        ("PKCS12", {"client_cert_pkcs12": CLIENT.pkcs12("p", [INTERMEDIATE]), "keystore_password": "p"}),
        ("PKCS12", {"client_cert_pkcs12": CLIENT.pkcs12(chain=[INTERMEDIATE])}),
    ],
    ids=["pem", "pem with password", "pkcs12 with password", "pkcs12"],
)
async def test_with_mutual_tls_both_ends_are_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keystore: str, credential: dict[str, str]
) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(keys))
    context = await TLSContexts().get(mutual_key(keystore, credential))
    assert list(keys.iterdir()) == []  # the key lies in no file any more
    _, server = handshake(context, server_context(tmp_path, mutual=True), HOST)
    assert server.getpeercert(binary_form=True) == CLIENT.certificate.public_bytes(serialization.Encoding.DER)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(context, server_context(tmp_path, mutual=True), "another.example")


async def test_an_authority_of_the_connectors_own_is_trusted_and_no_other(tmp_path: Path) -> None:
    context = await TLSContexts().get(tls_key(URL, ClientConfig(), {"ca_cert_pem": AUTHORITY.pem}))
    handshake(context, server_context(tmp_path), HOST)
    assert context.cert_store_stats()["x509_ca"] == 1
    for certificate, host in ((SERVER, "another.example"), (issue(HOST, issue("other", authority=True)), HOST)):
        with pytest.raises(ssl.SSLCertVerificationError):
            handshake(context, server_context(tmp_path, certificate), host)


async def test_an_authority_that_cannot_be_read_is_named() -> None:
    with pytest.raises(InvalidRequest, match=r"credential \[ca_cert_pem\] cannot be read: it must hold certificates"):
        await TLSContexts().get(tls_key(URL, ClientConfig(), {"ca_cert_pem": "/etc/ca.pem"}))


KEY_WITHOUT_CERTIFICATE = base64.b64encode(
    pkcs12.serialize_key_and_certificates(None, CLIENT.key, None, None, serialization.NoEncryption())
).decode()
UNSUPPORTED_KEY = (
    x25519.X25519PrivateKey.generate()
    .private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    .decode()
)


@pytest.mark.parametrize(
    ("keystore", "credential"),
    [
        ("PEM", {"client_cert_pem": CHAIN, "client_key_pem": SERVER.key_pem()}),
        ("PEM", {"client_cert_pem": CHAIN, "client_key_pem": "no key"}),
        ("PEM", {"client_cert_pem": "no certificate", "client_key_pem": CLIENT.key_pem()}),
        ("PEM", {"client_cert_pem": CHAIN, "client_key_pem": CLIENT.key_pem("p"), "keystore_password": "wrong"}),
        ("PEM", {"client_cert_pem": CHAIN, "client_key_pem": CLIENT.key_pem("p")}),
        ("PEM", {"client_cert_pem": CHAIN, "client_key_pem": UNSUPPORTED_KEY}),
        ("PKCS12", {"client_cert_pkcs12": CLIENT.pkcs12("p"), "keystore_password": "wrong"}),
        ("PKCS12", {"client_cert_pkcs12": base64.b64encode(b"no bundle").decode()}),
        ("PKCS12", {"client_cert_pkcs12": KEY_WITHOUT_CERTIFICATE}),
    ],
    ids=[
        "key of another", "no key", "no certificate", "wrong password", "no password",
        "unsupported key", "wrong password of a bundle", "no bundle",
        "bundle without a certificate",
    ],
)  # fmt: skip
async def test_credentials_that_do_not_belong_together_are_the_connectors_fault(
    keystore: str, credential: Mapping[str, str]
) -> None:
    with pytest.raises(InvalidRequest) as raised:
        await TLSContexts().get(mutual_key(keystore, credential))
    assert raised.value.reason == (
        f"The connector's {keystore} credentials for mutual TLS cannot be read. Check that the certificate, the key "
        "and the password in its credential belong together"
    )


@pytest.mark.parametrize(
    ("keystore", "credential", "problem"),
    [
        ("PEM", {"client_key_pem": "k"}, f"{MISSING} [client_cert_pem], which the connector lacks"),
        ("PEM", {"client_cert_pem": "c"}, f"{MISSING} [client_key_pem], which the connector lacks"),
        ("PKCS12", {}, f"{MISSING} [client_cert_pkcs12], which the connector lacks"),
        ("PKCS12", {"client_cert_pkcs12": "A"}, "The credential [client_cert_pkcs12] is not base64"),
    ],
)
async def test_a_credential_that_is_missing_is_named(keystore: str, credential: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        await TLSContexts().get(mutual_key(keystore, credential))
    assert raised.value.reason == problem


async def test_connections_with_the_same_key_share_a_context() -> None:
    contexts = TLSContexts()
    first, second = await asyncio.gather(contexts.get(PLAIN), contexts.get(PLAIN))
    assert first is second is await contexts.get(PLAIN)
    assert first is not await contexts.get(UNVERIFIED)


async def test_the_context_used_longest_ago_is_dropped_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_contexts, "MAX_CONTEXTS", 2)
    contexts = TLSContexts()
    plain, unverified = await contexts.get(PLAIN), await contexts.get(UNVERIFIED)
    assert await contexts.get(PLAIN) is plain
    await contexts.get(mutual_key("PEM", PEM_CREDENTIAL))
    assert await contexts.get(PLAIN) is plain
    assert await contexts.get(UNVERIFIED) is not unverified
