"""TLS contexts for connections to providers, one for each combination of verification and client certificate."""

import asyncio
import base64
import binascii
import ssl
from collections import OrderedDict
from collections.abc import Mapping

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.tls.key_pairs import (
    KeyPair,
    checked_pair,
    load_key_pair,
    parse_certificates,
    parse_pkcs12,
    parse_private_key,
)

MAX_CONTEXTS = 64  # a context takes some 100 KiB, most of it for the certificate authorities

# (skip verification, keystore type, the credentials of mutual TLS)
TLSKey = tuple[bool, str, tuple[tuple[str, str], ...]]
PLAIN: TLSKey = (False, "", ())
UNVERIFIED: TLSKey = (True, "", ())

_KEYS = ("client_cert_pem", "client_key_pem", "client_cert_pkcs12", "ca_cert_pem", "keystore_password")


def tls_key(config: ClientConfig, credential: Mapping[str, str]) -> TLSKey:
    """Return the key by which connections can share a TLS context.

    `credential` is the connector's; it counts with mutual TLS only.
    """
    if not config.mutual_tls_enabled:
        return UNVERIFIED if config.skip_ssl_verification else PLAIN
    client_certificate = tuple((name, credential[name]) for name in _KEYS if credential.get(name))
    return (config.skip_ssl_verification, config.keystore_type or "PEM", client_certificate)


class TLSContexts:
    """TLS contexts by TLSKey, at most MAX_CONTEXTS; the least recently used is dropped first."""

    def __init__(self) -> None:
        self._contexts: OrderedDict[TLSKey, ssl.SSLContext] = OrderedDict()
        self._creating = asyncio.Lock()  # a burst of first requests makes one context, not one each

    async def get(self, key: TLSKey) -> ssl.SSLContext:
        """Return the context of the key. InvalidRequest if its client certificate cannot be read.

        It is made in a thread the first time: reading the certificate authorities takes some 20 ms.
        """
        context = self._contexts.get(key)
        if context is None:
            async with self._creating:
                context = self._contexts.get(key)
                if context is None:
                    context = self._contexts[key] = await asyncio.to_thread(_create_context, key)
            if len(self._contexts) > MAX_CONTEXTS:
                self._contexts.popitem(last=False)
        else:
            self._contexts.move_to_end(key)
        return context


def _create_context(key: TLSKey) -> ssl.SSLContext:
    skip, keystore, items = key
    credential = dict(items)
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    if skip:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if not keystore:
        return context
    try:
        if "ca_cert_pem" in credential:
            context.load_verify_locations(cadata=credential["ca_cert_pem"])
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
