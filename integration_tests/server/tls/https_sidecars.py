"""A sidecar that speaks HTTPS, with certificates of the tests' own authority."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from integration_tests.support.certificates import Certificate, new_authority
from integration_tests.support.sidecars import Sidecar, running_sidecar

_TLS = "opensearch_ml_stream.tls."


@dataclass(frozen=True, slots=True)
class HTTPSSidecar:
    """A running sidecar, and the files of its certificate, its authority and a client of that authority."""

    sidecar: Sidecar
    authority: Certificate
    folder: Path

    @property
    def ca_certs(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def client_certificate(self) -> Path:
        return self.folder / "ann.pem"

    @property
    def port(self) -> int:
        return int(self.sidecar.url.rpartition(":")[2])

    def context(self) -> ssl.SSLContext:
        """A client's TLS that trusts the authority."""
        return ssl.create_default_context(cafile=self.ca_certs)

    def replace_certificate(self) -> bytes:
        """Writes a new certificate and key over the old ones; the new certificate in DER."""
        return write_certificate(self.folder, self.authority.issue("localhost"))


def write_certificate(folder: Path, certificate: Certificate) -> bytes:
    (folder / "cert.pem").write_text(certificate.certificate_pem)
    (folder / "key.pem").write_text(certificate.key_pem)
    return ssl.PEM_cert_to_DER_cert(certificate.certificate_pem)


@contextmanager
def running_https_sidecar(
    folder: Path, client_certificates: str = "optional", arguments: tuple[str, ...] = (), **settings: str
) -> Iterator[HTTPSSidecar]:
    authority = new_authority()
    (folder / "ca.pem").write_text(authority.certificate_pem)
    ann = authority.issue("ann")
    (folder / "ann.pem").write_text(ann.key_pem + ann.certificate_pem)
    write_certificate(folder, authority.issue("localhost"))
    tls = {
        f"{_TLS}certificate": str(folder / "cert.pem"),
        f"{_TLS}key": str(folder / "key.pem"),
        f"{_TLS}client_certificates": client_certificates,
        f"{_TLS}client_authorities": str(folder / "ca.pem"),
        **{f"opensearch_ml_stream.{name}": value for name, value in settings.items()},
    }
    trust = ssl.create_default_context(cafile=folder / "ca.pem")
    trust.load_cert_chain(folder / "ann.pem")
    with running_sidecar(folder, settings=tls, arguments=arguments, trust=trust) as sidecar:
        yield HTTPSSidecar(sidecar, authority, folder)
