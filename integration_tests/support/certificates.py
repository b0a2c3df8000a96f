"""Certificates for tests: an authority of their own, and what it signs."""

import datetime
import ssl
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_PEM = serialization.Encoding.PEM


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(_PEM).decode()

    @property
    def key_pem(self) -> str:
        return self.key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()

    def issue(self, name: str, valid_days: int = 1) -> "Certificate":
        """A certificate of this authority for the name and 127.0.0.1; with days below 0 it has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(IPv4Address("127.0.0.1"))])
        builder = _builder(name, self.certificate.subject, key, valid_days).add_extension(names, critical=False)
        return Certificate(builder.sign(self.key, hashes.SHA256()), key)

    def server_context(self, folder: Path, clients_of: "Certificate | None" = None) -> ssl.SSLContext:
        """A server's TLS with this certificate; with `clients_of`, only for clients that this authority signed."""
        file = folder / "server.pem"
        file.write_text(self.key_pem + self.certificate_pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        if clients_of is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=clients_of.certificate_pem)
        return context


def new_authority(name: str = "authority of the tests") -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(name, _name(name), key)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return Certificate(builder.sign(key, hashes.SHA256()), key)


def _builder(
    name: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, valid_days: int = 1
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=30))
        .not_valid_after(now + datetime.timedelta(days=valid_days))
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
