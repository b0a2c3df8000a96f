"""A certificate with its chain and key: out of PEM or PKCS #12 bytes, into an SSLContext.

A ValueError says what is wrong with the bytes. None repeats a password or a part of a key.
"""

import os
import re
import secrets
import ssl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import IO

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import pkcs12

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey

_PEM = serialization.Encoding.PEM
_KEY_BEGIN = re.compile(rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key; `certificates` begins with its own, those that issued it follow."""

    certificates: tuple[x509.Certificate, ...]
    key: PrivateKey

    @property
    def expires(self) -> datetime:
        """Return when the certificate expires, in UTC."""
        return self.certificates[0].not_valid_after_utc

    @property
    def subject(self) -> str:
        """Return the certificate's subject (RFC 4514)."""
        return self.certificates[0].subject.rfc4514_string()


def is_pem(data: bytes) -> bool:
    """Return whether the bytes are PEM, which is text; PKCS #12 is not."""
    return b"-----BEGIN " in data


def parse_certificates(data: bytes) -> tuple[x509.Certificate, ...]:
    """Return the certificates of PEM bytes, one at least."""
    try:
        return tuple(x509.load_pem_x509_certificates(data))
    except ValueError:
        raise ValueError("it holds no certificate in PEM that can be read (-----BEGIN CERTIFICATE-----)") from None


def parse_private_key(data: bytes, password: bytes | None = None) -> PrivateKey:
    """Return the first private key of PEM bytes, which may hold certificates as well."""
    begin = _KEY_BEGIN.search(data)
    if begin is None:
        raise ValueError("it holds no private key in PEM (-----BEGIN PRIVATE KEY-----)")
    content, end, _ = data[begin.start() :].partition(b"-----END " + begin[1] + b"-----")
    try:
        key = serialization.load_pem_private_key(content + end, password)
    except TypeError:
        missing = "the key is encrypted, and no password is given"
        raise ValueError(missing if password is None else "a password is given, and the key is not encrypted") from None
    except (ValueError, UnsupportedAlgorithm):
        problem = "the key cannot be read" if password is None else "the password is wrong, or the key cannot be read"
        raise ValueError(problem) from None
    return _supported(key)


def parse_pkcs12(bundle: bytes, password: bytes | None = None) -> KeyPair:
    """Return certificate, chain and key of a PKCS #12 bundle. An empty password is one, too."""
    try:
        key, certificate, issuers = pkcs12.load_key_and_certificates(bundle, password)
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("the password is wrong, or it is neither PEM nor PKCS #12") from None
    if key is None or certificate is None:
        raise ValueError("the PKCS #12 bundle holds no key, or no certificate for it")
    return checked_pair((certificate, *issuers), _supported(key))


def checked_pair(certificates: tuple[x509.Certificate, ...], key: PrivateKey) -> KeyPair:
    """Return certificate and key as a pair, if they are one."""
    try:
        certified = certificates[0].public_key()
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("the certificate's public key is of a kind that TLS does not use") from None
    if certified != key.public_key():
        raise ValueError("the key does not match the certificate; with a chain, the certificate itself must come first")
    return KeyPair(certificates, key)


def load_key_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Let connections of the context identify themselves with the certificate.

    OpenSSL reads a key from a file only: it is written to one for a moment, encrypted with a new password; to one in
    memory where the system has such files, as the disk may be full. ssl.SSLError if OpenSSL refuses it, another OSError
    if no file can be written.
    """
    password = secrets.token_bytes(24).hex()
    encryption = serialization.BestAvailableEncryption(password.encode())
    key_pem = pair.key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, encryption)
    with _private_file() as (file, path):
        file.write(key_pem + b"".join(one.public_bytes(_PEM) for one in pair.certificates))
        file.flush()
        context.load_cert_chain(path, password=password)


@contextmanager
def _private_file() -> Iterator[tuple[IO[bytes], str]]:
    """Open a new file, which nobody but this user can read, while the block runs; it gets its path too."""
    if sys.platform == "linux":
        with os.fdopen(os.memfd_create("key pair"), "wb") as memory:
            yield memory, f"/proc/self/fd/{memory.fileno()}"
    else:
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            yield file.file, file.name


def _supported(key: object) -> PrivateKey:
    if not isinstance(key, PrivateKey):
        raise ValueError("the key is of a kind that TLS does not use")
    return key
