"""A provider's TLS certificate in plain words: whose it is, how long it is good, and why it is not trusted."""

import ssl
from datetime import UTC, datetime
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.x509.oid import ExtensionOID

WARN_DAYS = 14  # before a certificate expires
MAX_NAMES = 20
MAX_CHARACTERS = 300


class Problem(NamedTuple):
    """Why a certificate is not trusted, and what to do."""

    summary: str
    advice: str


_PRIVATE_AUTHORITY = (
    "If the provider is your own, give its authority as the credential ca_cert_pem, or install it on this machine; "
    "if not, something between here and the provider may decrypt the traffic (a company's proxy)"
)
_RENEW = "Renew the certificate at the provider (or at the proxy in front of it)"
_OTHER_HOST = "Check the host in the connector's url: it must be one of the certificate's names"

# X509_V_ERR_*, https://docs.openssl.org/master/man3/X509_STORE_CTX_get_error/
_PROBLEMS = {
    9: Problem("The certificate is not valid yet", "Check this machine's clock, and when the certificate begins"),
    10: Problem("The certificate has expired", f"{_RENEW}; check this machine's clock, too"),
    18: Problem("The certificate is signed by itself, not by an authority that is trusted here", _PRIVATE_AUTHORITY),
    19: Problem("The certificate's authority is not trusted here", _PRIVATE_AUTHORITY),
    20: Problem(
        "The certificate's authority is not known here",
        f"Check that the provider sends its intermediate certificates. {_PRIVATE_AUTHORITY}",
    ),
    21: Problem(
        "The certificate's signature cannot be checked",
        "Check that the provider sends its intermediate certificates",
    ),
    23: Problem("The certificate was revoked", _RENEW),
    62: Problem("The certificate is for another host name", _OTHER_HOST),
    64: Problem("The certificate is for another address", _OTHER_HOST),
}


def explain(error: ssl.SSLCertVerificationError) -> Problem:
    """Return what a failed verification means."""
    known = _PROBLEMS.get(error.verify_code)
    if known is not None:
        return known
    return Problem(f"The certificate is not trusted: {error.verify_message}", _PRIVATE_AUTHORITY)


def describe(data: bytes, now: datetime | None = None) -> dict[str, Any]:
    """Return what a certificate (DER) says: subject, issuer, names, valid_from, valid_until, days_left.

    An empty object if it cannot be read. Texts are cut, as whoever made the certificate chose them.
    """
    try:
        certificate = x509.load_der_x509_certificate(data)
        begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        return {
            "subject": _cut(certificate.subject.rfc4514_string()),
            "issuer": _cut(certificate.issuer.rfc4514_string()),
            "names": _names(certificate),
            "valid_from": begins.isoformat(),
            "valid_until": ends.isoformat(),
            "days_left": (ends - (now or datetime.now(UTC))).days,
        }
    except ValueError:
        return {}


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        extension = certificate.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension):
        return []
    assert isinstance(extension, x509.SubjectAlternativeName)
    names = [*extension.get_values_for_type(x509.DNSName), *map(str, extension.get_values_for_type(x509.IPAddress))]
    return [_cut(name) for name in names[:MAX_NAMES]]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "..."
