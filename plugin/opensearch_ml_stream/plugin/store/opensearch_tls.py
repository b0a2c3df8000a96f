"""TLS to an OpenSearch store, from the options in its URL: trusted certificates, and the client's own."""

import hashlib
import re
import ssl
from collections.abc import Mapping

from opensearchpy import AIOHttpConnection

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.key_pairs import KeyPairFiles, load_key_pair, naming, parse_files, read_files

OPTIONS = ("verify_certs", "ca_certs", "fingerprint", "client_cert", "client_key", "client_key_password")
_CREDENTIALS = ("client_cert", "client_key", "client_key_password")

_SHA256 = re.compile(r"[0-9a-f]{64}")


class PinnedCertificate(ssl.SSLObject):
    """A TLS connection to a server whose certificate must be one of its context's `fingerprints`."""

    def do_handshake(self) -> None:
        """Do the handshake, and check the certificate. ssl.SSLCertVerificationError if it is another."""
        super().do_handshake()
        context = self.context
        assert isinstance(context, PinningContext)
        if hashlib.sha256(self.getpeercert(binary_form=True) or b"").hexdigest() not in context.fingerprints:
            raise ssl.SSLCertVerificationError("the server's certificate does not have the fingerprint in the URL")


class PinningContext(ssl.SSLContext):
    """A client's TLS that accepts a few certificates, by the SHA-256 of each in hexadecimal."""

    fingerprints: frozenset[str] = frozenset()
    sslobject_class = PinnedCertificate


def store_tls(options: Mapping[str, str]) -> ssl.SSLContext:
    """Return the TLS context that a URL's options describe. InvalidRequest names a wrong option, never a secret."""
    if unknown := sorted(options.keys() - set(OPTIONS)):
        raise InvalidRequest(f"The store's URL takes {', '.join(OPTIONS)} after ?; check {', '.join(unknown)}")
    try:
        context = _verifying_context(options)
        if options.get("client_cert"):
            _load_client_certificate(context, options)
        elif options.get("client_key") or options.get("client_key_password"):
            raise InvalidRequest("client_key and client_key_password need client_cert")
    except InvalidRequest as error:
        raise InvalidRequest(f"The store's URL, after ?: {error.reason}") from None
    return context


def without_credentials(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that say whom to trust, without those to log in with."""
    return {name: value for name, value in options.items() if name not in _CREDENTIALS}


def _verifying_context(options: Mapping[str, str]) -> ssl.SSLContext:
    """Return a context that trusts `ca_certs` alone, or `fingerprint` alone, or both at once, or public authorities."""
    authorities = options.get("ca_certs")
    fingerprints = _fingerprints(options.get("fingerprint", ""))
    verify = options.get("verify_certs", "true").lower()
    if verify not in ("true", "false"):
        raise InvalidRequest("verify_certs must be true or false")
    if verify == "false" and (authorities or fingerprints):
        raise InvalidRequest("verify_certs=false contradicts ca_certs and fingerprint")
    context = PinningContext(ssl.PROTOCOL_TLS_CLIENT) if fingerprints else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if isinstance(context, PinningContext):
        context.fingerprints = fingerprints
    if verify == "false" or (fingerprints and not authorities):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authorities:
        _trust(context, authorities)
    else:
        context.load_default_certs()
        context.load_verify_locations(cafile=AIOHttpConnection.default_ca_certs())
    return context


def _trust(context: ssl.SSLContext, authorities: str) -> None:
    certificates = read_files([authorities])[authorities]
    try:
        context.load_verify_locations(cadata=certificates.decode("ascii", "ignore"))
    except (ValueError, ssl.SSLError):
        raise InvalidRequest(f"{authorities}: it holds no certificate in PEM that can be read") from None


def _load_client_certificate(context: ssl.SSLContext, options: Mapping[str, str]) -> None:
    password = options.get("client_key_password", "")
    if password and not password.startswith(("env:", "file:")):
        raise InvalidRequest("client_key_password must be env:NAME or file:PATH, not the password itself")
    files = KeyPairFiles(options["client_cert"], options.get("client_key", ""), password)
    pair = parse_files(files, read_files(files.paths()))
    with naming(files.certificate):
        load_key_pair(context, pair)


def _fingerprints(text: str) -> frozenset[str]:
    """Return SHA-256 fingerprints as `openssl x509 -fingerprint -sha256` prints them, several separated by commas."""
    fingerprints = frozenset(one.strip().replace(":", "").lower() for one in text.split(",") if text)
    if not all(_SHA256.fullmatch(one) for one in fingerprints):
        raise InvalidRequest("fingerprint must be the SHA-256 of the server's certificate, 64 hexadecimal digits")
    return fingerprints
