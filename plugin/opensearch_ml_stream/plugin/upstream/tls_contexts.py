"""TLS contexts for connections to providers, one for each combination of verification and client certificate."""

import asyncio
import base64
import binascii
import ssl
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import InvalidRequest, Unavailable
from opensearch_ml_stream.plugin.key_pairs import (
    KeyPair,
    checked_pair,
    load_key_pair,
    parse_certificates,
    parse_pkcs12,
    parse_private_key,
)

MAX_CONTEXTS = 64  # a context takes some 100 KiB, most of it for the certificate authorities

# (skip verification, keystore type or "" without mutual TLS, the credentials that count)
TLSKey = tuple[bool, str, tuple[tuple[str, str], ...]]
PLAIN: TLSKey = (False, "", ())
UNVERIFIED: TLSKey = (True, "", ())

AUTHORITY = "ca_cert_pem"  # the credential that holds authorities of the connector's own
_KEYS = ("client_cert_pem", "client_key_pem", "client_cert_pkcs12", AUTHORITY, "keystore_password")


def credential_of_tls(config: ClientConfig, credential: Mapping[str, str]) -> Mapping[str, str]:
    """Return those of a connector's credentials that count for TLS: no others are handed to a connection."""
    names = _KEYS if config.mutual_tls_enabled else (AUTHORITY,)
    return {name: credential[name] for name in names if credential.get(name)}


def tls_key(url: str, config: ClientConfig, credential: Mapping[str, str]) -> TLSKey:
    """Return the key by which connections to a URL can share a TLS context; PLAIN where there is no TLS.

    InvalidRequest as from `check_mutual_tls`.
    """
    check_mutual_tls(url, config)
    if is_in_clear(url):
        return PLAIN
    items = tuple(credential_of_tls(config, credential).items())
    if config.mutual_tls_enabled:
        return (False, config.keystore_type or "PEM", items)
    return UNVERIFIED if config.skip_ssl_verification else (False, "", items)


def check_mutual_tls(url: str, config: ClientConfig) -> None:
    """Raise InvalidRequest for mutual TLS that would be none: with a server that is not verified, or without TLS.

    ML Commons refuses both, too. A URL whose scheme only a request fills has none yet.
    """
    if not config.mutual_tls_enabled:
        return
    if config.skip_ssl_verification:
        raise InvalidRequest(
            "client_config.skip_ssl_verification cannot be enabled together with mutual_tls_enabled: anybody could be "
            f"the server. Give the provider's authority as the credential {AUTHORITY} instead"
        )
    if is_in_clear(url):
        origin = "/".join(url.strip().split("/", 3)[:3]).partition("?")[0]
        raise InvalidRequest(
            f"Mutual TLS cannot be used with the cleartext endpoint [{origin}]: client_config.mutual_tls_enabled needs "
            "a url that begins with https://"
        )


def is_in_clear(url: str) -> bool:
    """Whether calls of a URL are not encrypted."""
    return url.lstrip()[:7].lower() == "http://"


class TLSContexts:
    """TLS contexts by TLSKey, at most MAX_CONTEXTS; the least recently used is dropped first."""

    def __init__(self) -> None:
        self._contexts: OrderedDict[TLSKey, ssl.SSLContext] = OrderedDict()
        self._creating = asyncio.Lock()  # a burst of first requests makes one context, not one each

    async def get(self, key: TLSKey) -> ssl.SSLContext:
        """Return the context of the key. InvalidRequest if its client certificate cannot be read.

        Unavailable if this machine cannot make one now, as when no descriptor is left. It is made in a thread the first
        time: reading the certificate authorities takes some 20 ms.
        """
        context = self._contexts.get(key)
        if context is None:
            async with self._creating:
                context = self._contexts.get(key)
                if context is None:
                    context = self._contexts[key] = await _created(key)
            if len(self._contexts) > MAX_CONTEXTS:
                self._contexts.popitem(last=False)
        else:
            self._contexts.move_to_end(key)
        return context


async def _created(key: TLSKey) -> ssl.SSLContext:
    try:
        return await asyncio.to_thread(_create_context, key)
    except (OSError, RuntimeError) as error:  # RuntimeError: no thread can be started
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Unavailable(f"TLS to providers cannot be prepared on this machine: {reason}") from error


def _create_context(key: TLSKey) -> ssl.SSLContext:
    skip, keystore, items = key
    credential = dict(items)
    try:
        context = ssl.create_default_context(cadata=credential.get(AUTHORITY))  # with one of its own, no others count
    except (ValueError, ssl.SSLError):
        raise InvalidRequest(
            f"The connector's credential [{AUTHORITY}] cannot be read: it must hold certificates in PEM"
        ) from None
    file = ssl.get_default_verify_paths().cafile
    if file and AUTHORITY not in credential and not context.cert_store_stats()["x509_ca"]:
        # OpenSSL passes over a file that it cannot open now, and the context would be kept without authorities.
        with suppress(ssl.SSLError):  # for the file that holds none
            context.load_verify_locations(file)
    context.set_alpn_protocols(["http/1.1"])
    if skip:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if not keystore:
        return context
    try:
        load_key_pair(context, _pkcs12(credential) if keystore == "PKCS12" else _pem(credential))
    except (ValueError, ssl.SSLError):
        raise InvalidRequest(
            f"The connector's {keystore} credentials for mutual TLS cannot be read. Check that the certificate, the "
            "key and the password in its credential belong together"
        ) from None
    return context


def _pem(credential: Mapping[str, str]) -> KeyPair:
    _require(credential, "client_cert_pem", "client_key_pem")
    password = credential.get("keystore_password", "").encode()
    certificates = parse_certificates(credential["client_cert_pem"].encode())
    return checked_pair(certificates, parse_private_key(credential["client_key_pem"].encode(), password or None))


def _pkcs12(credential: Mapping[str, str]) -> KeyPair:
    """Return certificate chain and key of a PKCS #12 bundle in base64."""
    _require(credential, "client_cert_pkcs12")
    try:
        bundle = base64.b64decode(credential["client_cert_pkcs12"], validate=False)
    except binascii.Error:
        raise InvalidRequest("The credential [client_cert_pkcs12] is not base64") from None
    return parse_pkcs12(bundle, credential.get("keystore_password", "").encode() or None)


def _require(credential: Mapping[str, str], *names: str) -> None:
    for name in names:
        if name not in credential:
            raise InvalidRequest(f"Mutual TLS needs the credential [{name}], which the connector lacks")
