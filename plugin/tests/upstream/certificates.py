"""Keys and certificates for TLS in memory."""

import base64
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Certificate:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def key_pem(self, password: str = "") -> str:
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password:
            encryption = serialization.BestAvailableEncryption(password.encode())
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        ).decode()

    def pkcs12(self, password: str = "", chain: "list[Certificate] | None" = None) -> str:
        """A bundle in base64, with the certificates of the chain."""
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password:
            encryption = serialization.BestAvailableEncryption(password.encode())
        issuers = [one.certificate for one in chain or []]
        bundle = pkcs12.serialize_key_and_certificates(b"name", self.key, self.certificate, issuers, encryption)
        return base64.b64encode(bundle).decode()


def issue(name: str, issuer: Certificate | None = None, *, authority: bool = False) -> Certificate:
    """A certificate for a name; its own issuer if none is given."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = datetime.now(UTC) - timedelta(hours=1)
    issuer_key = key if issuer is None else issuer.key
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .add_extension(_key_usage(authority=authority), critical=True)
        .sign(issuer_key, hashes.SHA256())
    )
    return Certificate(certificate, key)


def handshake(
    client: ssl.SSLContext, server: ssl.SSLContext, host: str, session: ssl.SSLSession | None = None
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both ends of a TLS connection in memory, after its handshake; ssl.SSLError if it fails."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_end = client.wrap_bio(to_client, to_server, server_hostname=host, session=session)
    server_end = server.wrap_bio(to_server, to_client, server_side=True)
    pending = [client_end, server_end]
    for _ in range(10):
        for end in tuple(pending):
            try:
                end.do_handshake()
                pending.remove(end)
            except ssl.SSLWantReadError:
                pass
    assert not pending
    return client_end, server_end


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    """What Python 3.13 checks (VERIFY_X509_STRICT): an authority signs certificates, another key signs handshakes."""
    return x509.KeyUsage(
        digital_signature=not authority, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=authority, crl_sign=authority, encipher_only=False, decipher_only=False,
    )  # fmt: skip
