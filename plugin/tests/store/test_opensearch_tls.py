"""TLS to an OpenSearch store: whom it trusts, as whom it logs in, and which options are refused."""

import base64
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store.opensearch_tls import store_tls
from tests.upstream.certificates import Certificate, handshake, issue

AUTHORITY = issue("authority", authority=True)
SERVER = issue("cluster.example", AUTHORITY)
ADMIN = issue("admin", AUTHORITY)


def fingerprint(certificate: Certificate) -> str:
    """As `openssl x509 -fingerprint -sha256` prints it."""
    return certificate.certificate.fingerprint(hashes.SHA256()).hex(":").upper()


@pytest.fixture
def ca_certs(tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    path.write_text(AUTHORITY.pem)
    return str(path)


@pytest.fixture
def server(tmp_path: Path) -> ssl.SSLContext:
    """An OpenSearch that asks for a certificate, and takes none too."""
    file = tmp_path / "server.pem"
    file.write_text(SERVER.key_pem() + SERVER.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=AUTHORITY.pem)
    return context


def connect(server: ssl.SSLContext, host: str = "cluster.example", **options: str) -> bytes | None:
    """The client's certificate as the server sees it; ssl.SSLError if the handshake fails."""
    _, server_end = handshake(store_tls(options), server, host)
    return server_end.getpeercert(binary_form=True)


def test_only_the_named_authority_is_trusted(server: ssl.SSLContext, ca_certs: str) -> None:
    connect(server, ca_certs=ca_certs)
    with pytest.raises(ssl.SSLCertVerificationError, match="self-signed certificate in certificate chain"):
        connect(server)
    assert {entry["subject"] for entry in store_tls({"ca_certs": ca_certs}).get_ca_certs()} == {
        ((("commonName", "authority"),),)
    }


def test_the_host_must_be_in_the_certificate(server: ssl.SSLContext, ca_certs: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        connect(server, "other.example", ca_certs=ca_certs)


def test_verification_can_be_switched_off(server: ssl.SSLContext) -> None:
    connect(server, "other.example", verify_certs="FALSE")


def test_public_authorities_are_trusted_where_none_is_named() -> None:
    context = store_tls({"verify_certs": "true"})
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.get_ca_certs()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    "written",
    [fingerprint(SERVER), fingerprint(SERVER).replace(":", "").lower()],
    ids=["openssl", "plain"],
)
def test_a_pinned_certificate_needs_no_authority_and_no_name(server: ssl.SSLContext, written: str) -> None:
    connect(server, "other.example", fingerprint=written)
    connect(server, fingerprint=f"{fingerprint(ADMIN)}, {written}")  # while it is being replaced


def test_another_certificate_than_the_pinned_is_refused_whoever_issued_it(
    server: ssl.SSLContext, ca_certs: str
) -> None:
    for trust in ({}, {"ca_certs": ca_certs}):
        with pytest.raises(ssl.SSLCertVerificationError, match="does not have the fingerprint"):
            connect(server, fingerprint=fingerprint(ADMIN), **trust)


def test_with_an_authority_the_pinned_certificate_is_verified_too(server: ssl.SSLContext, ca_certs: str) -> None:
    connect(server, fingerprint=fingerprint(SERVER), ca_certs=ca_certs)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        connect(server, "other.example", fingerprint=fingerprint(SERVER), ca_certs=ca_certs)


def _pem(folder: Path) -> Mapping[str, str]:
    (folder / "admin.pem").write_text(ADMIN.pem)
    (folder / "admin.key").write_text(ADMIN.key_pem())
    return {"client_cert": str(folder / "admin.pem"), "client_key": str(folder / "admin.key")}


def _pkcs12(folder: Path) -> Mapping[str, str]:
    (folder / "admin.p12").write_bytes(base64.b64decode(ADMIN.pkcs12("hush")))
    (folder / "password").write_text("hush\n")
    return {"client_cert": str(folder / "admin.p12"), "client_key_password": f"file:{folder / 'password'}"}


@pytest.mark.parametrize("files", [_pem, _pkcs12])
@pytest.mark.parametrize("pinned", [False, True])
def test_a_client_certificate_is_presented(
    server: ssl.SSLContext, ca_certs: str, tmp_path: Path, files: Callable[[Path], Mapping[str, str]], pinned: bool
) -> None:
    trust = {"fingerprint": fingerprint(SERVER)} if pinned else {"ca_certs": ca_certs}
    presented = connect(server, **trust, **files(tmp_path))
    assert presented == ssl.PEM_cert_to_DER_cert(ADMIN.pem)
    assert connect(server, **trust) is None


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"fingerprint": "abc"}, "fingerprint must be the SHA-256 of the server's certificate, 64 hexadecimal digits"),
        ({"fingerprint": "0" * 64, "verify_certs": "false"}, "verify_certs=false contradicts ca_certs and fingerprint"),
        ({"client_key": "/k"}, "client_key and client_key_password need client_cert"),
        ({"client_cert": "/no/such"}, "/no/such: the file cannot be read (No such file or directory)"),
        (
            {"client_cert": "/c", "client_key_password": "hush"},
            "client_key_password must be env:NAME or file:PATH, not the password itself",
        ),
    ],
)
def test_options_that_cannot_be_used_are_refused(options: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        store_tls(options)
    assert raised.value.reason == f"The store's URL, after ?: {reason}"


def test_a_file_of_authorities_without_any_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text("")
    with pytest.raises(InvalidRequest, match=f"{path}: it holds no certificate in PEM that can be read"):
        store_tls({"ca_certs": str(path)})
