"""A certificate for 127.0.0.1, and for the name that nginx has for it, that signs itself, for a provider behind TLS."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

UPSTREAM = "provider"  # the name of the provider in nginx's configuration


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """The files of a new certificate and its key; who trusts the certificate trusts the provider."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench")])
    now = datetime.datetime.now(datetime.UTC)
    public = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName(UPSTREAM)]
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(public, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier(public.digest, None, None), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = (folder / "provider.pem", folder / "provider.key")
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pem, pkcs8, plain = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(pem, pkcs8, plain))
    return files
