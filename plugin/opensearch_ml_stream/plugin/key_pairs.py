"""Certificates with their chains and keys: read from PEM and PKCS #12 files, and loaded into an SSLContext.

The contents of files are read before they are parsed, so that they can be compared with earlier ones. No error repeats
a password or a part of a key.
"""

import os
import re
import secrets
import ssl
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import pkcs12

from opensearch_ml_stream.connectors.errors import InvalidRequest

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey

Contents = Mapping[str, bytes]
"""The contents of files by path."""

MAX_FILE_BYTES = 1024 * 1024

_PEM = serialization.Encoding.PEM
_KEY_BEGIN = re.compile(rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key; `certificates` begins with its own, followed by those of its issuers."""

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


@dataclass(frozen=True, slots=True)
class KeyPairFiles:
    """The file of a certificate, that of its key if that is another, and the key's password (env:NAME, file:PATH)."""

    certificate: str
    key: str = ""
    password: str = ""

    def paths(self) -> list[str]:
        """Return the paths of all files."""
        password = self.password.removeprefix("file:") if self.password.startswith("file:") else ""
        return [path for path in (self.certificate, self.key, password) if path]


def read_files(paths: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of files by path. InvalidRequest names the first that cannot be read."""
    return {path: _read(path) for path in paths}


def parse_files(files: KeyPairFiles, contents: Contents) -> KeyPair:
    """Return the certificate and key in files that were read. InvalidRequest says which file is wrong, and why."""
    password = _password(files.password, contents)
    data = contents[files.certificate]
    key_path = files.key or files.certificate
    with naming(files.certificate):
        if not is_pem(data):
            return parse_pkcs12(data, password)
        certificates = parse_certificates(data)
    with naming(key_path):
        return checked_pair(certificates, parse_private_key(contents[key_path], password))


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Raise InvalidRequest, which names the file, for errors of parsing it or of loading its key pair."""
    try:
        yield
    except (ValueError, ssl.SSLError) as error:
        raise InvalidRequest(f"{path}: {error}") from None
    except OSError as error:
        raise InvalidRequest(f"{path}: its key cannot be written to a temporary file ({error.strerror})") from None


def is_pem(data: bytes) -> bool:
    """Return whether the bytes are PEM and not PKCS #12."""
    return b"-----BEGIN " in data


def parse_certificates(data: bytes) -> tuple[x509.Certificate, ...]:
    """Return the certificates in PEM bytes; ValueError if there is none."""
    try:
        return tuple(x509.load_pem_x509_certificates(data))
    except ValueError:
        raise ValueError("it holds no certificate in PEM that can be read (-----BEGIN CERTIFICATE-----)") from None


def parse_private_key(data: bytes, password: bytes | None = None) -> PrivateKey:
    """Return the first private key in PEM bytes, which may contain certificates, too; ValueError if there is none."""
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
    """Return certificate, chain and key of a PKCS #12 bundle; ValueError if it cannot be read."""
    try:
        key, certificate, issuers = pkcs12.load_key_and_certificates(bundle, password)
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("the password is wrong, or it is neither PEM nor PKCS #12") from None
    if key is None or certificate is None:
        raise ValueError("the PKCS #12 bundle holds no key, or no certificate for it")
    return checked_pair((certificate, *issuers), _supported(key))


def checked_pair(certificates: tuple[x509.Certificate, ...], key: PrivateKey) -> KeyPair:
    """Return certificate and key as a pair; ValueError if they do not match."""
    try:
        certified = certificates[0].public_key()
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("the certificate's public key is of a kind that TLS does not use") from None
    if certified != key.public_key():
        raise ValueError("the key does not match the certificate; with a chain, the certificate itself must come first")
    return KeyPair(certificates, key)


def load_key_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Use the certificate for connections of the context.

    OpenSSL reads a key from a file only. So it is written to a temporary one, encrypted with a new password; to one in
    memory if the system has such files, since the disk may be full. Raises ssl.SSLError if OpenSSL refuses the key,
    another OSError if no file can be written.
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
    """Open a new file that only this user can read; yield it and its path."""
    if sys.platform == "linux":
        with os.fdopen(os.memfd_create("key pair"), "wb") as memory:
            yield memory, f"/proc/self/fd/{memory.fileno()}"
    else:
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            yield file.file, file.name


def _read(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        problem = error.strerror if isinstance(error, OSError) else "no file can have that path"
        raise InvalidRequest(f"{path}: the file cannot be read ({problem})") from None
    if len(data) > MAX_FILE_BYTES:
        raise InvalidRequest(f"{path}: the file is larger than {MAX_FILE_BYTES} bytes")
    return data


def _password(source: str, contents: Contents) -> bytes | None:
    """Return the password at env:NAME or file:PATH, without the line end of a file; None if it is empty."""
    if source.startswith("file:"):
        return contents[source.removeprefix("file:")].rstrip(b"\r\n") or None
    if source.startswith("env:"):
        name = source.removeprefix("env:")
        if name not in os.environ:
            raise InvalidRequest(f"the environment variable {name}, which should hold the key's password, is not set")
        return os.environb[os.fsencode(name)] or None
    return None


def _supported(key: object) -> PrivateKey:
    if not isinstance(key, PrivateKey):
        raise ValueError("the key is of a kind that TLS does not use")
    return key
