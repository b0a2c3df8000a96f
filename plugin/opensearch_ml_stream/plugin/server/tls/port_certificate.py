"""The certificate of the port: an SSLContext out of the files that the settings name."""

import logging
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography.hazmat.primitives import serialization

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.tls.files import Contents, KeyPairFiles, naming, parse_files, read_files
from opensearch_ml_stream.plugin.tls.key_pairs import KeyPair, load_key_pair, parse_certificates

_VERIFY = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}

log = logging.getLogger("opensearch_ml_stream")


@dataclass(frozen=True, slots=True)
class PortCertificate:
    """A certificate with its key, and the TLS of connections that present it.

    `authorities` is PEM of those that may have issued the clients' certificates.
    """

    context: ssl.SSLContext
    pair: KeyPair
    authorities: bytes | None = None


def read_certificate_files(settings: Settings) -> Contents | None:
    """Return what the files of the port's TLS hold, None where the settings name no certificate.

    InvalidRequest if one cannot be read, or if the settings contradict each other.
    """
    _check_settings(settings)
    if not settings.tls_certificate:
        return None
    authorities = [settings.tls_client_authorities] if settings.tls_client_authorities else []
    return read_files([*_files(settings).paths(), *authorities])


def create_certificate(settings: Settings, contents: Contents) -> PortCertificate:
    """Return the port's certificate out of what its files hold. InvalidRequest says which file is wrong, and why."""
    pair = parse_files(_files(settings), contents)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_alpn_protocols(["http/1.1"])
    context.verify_mode = _VERIFY[settings.tls_client_certificates]
    if authorities := settings.tls_client_authorities:
        with naming(authorities):
            for authority in parse_certificates(contents[authorities]):
                context.load_verify_locations(cadata=authority.public_bytes(serialization.Encoding.DER))
    with naming(settings.tls_certificate):
        load_key_pair(context, pair)
    return PortCertificate(context, pair, contents.get(settings.tls_client_authorities))


def warn_of_dates(certificate: PortCertificate, now: datetime | None = None) -> None:
    """Log a certificate that clients will not accept because of its dates."""
    now = now or datetime.now(UTC)
    own = certificate.pair.certificates[0]
    if own.not_valid_after_utc <= now:
        log.warning("the port's certificate (%s) expired on %s", certificate.pair.subject, own.not_valid_after_utc)
    elif own.not_valid_before_utc > now:
        log.warning(
            "the port's certificate (%s) is not valid before %s", certificate.pair.subject, own.not_valid_before_utc
        )


def _files(settings: Settings) -> KeyPairFiles:
    return KeyPairFiles(settings.tls_certificate, settings.tls_key, settings.tls_key_password)


def _check_settings(settings: Settings) -> None:
    asks_clients = settings.tls_client_certificates != "none"
    others = settings.tls_key or settings.tls_key_password or settings.tls_client_authorities or asks_clients
    if not settings.tls_certificate and others:
        raise InvalidRequest("Settings opensearch_ml_stream.tls.* need opensearch_ml_stream.tls.certificate")
    if asks_clients != bool(settings.tls_client_authorities):
        raise InvalidRequest(
            "Settings opensearch_ml_stream.tls.client_certificates (optional or required) and "
            "opensearch_ml_stream.tls.client_authorities belong together; set both or neither"
        )
