"""Files that hold a certificate and its key, and the place of their password.

What they hold is read before it is parsed, so that it can be compared with what they held before.
"""

import os
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.tls.key_pairs import (
    KeyPair,
    checked_pair,
    is_pem,
    parse_certificates,
    parse_pkcs12,
    parse_private_key,
)

MAX_FILE_BYTES = 1024 * 1024

Contents = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class KeyPairFiles:
    """A certificate's file, and what it needs: `key` unless the key is in it too, `password` (env:NAME, file:PATH)."""

    certificate: str
    key: str = ""
    password: str = ""

    def paths(self) -> list[str]:
        """Return the paths of all files."""
        password = self.password.removeprefix("file:") if self.password.startswith("file:") else ""
        return [path for path in (self.certificate, self.key, password) if path]


def read_files(paths: Iterable[str]) -> dict[str, bytes]:
    """Return what the files hold, by path. InvalidRequest names the first that cannot be read."""
    return {path: _read(path) for path in paths}


def parse_files(files: KeyPairFiles, contents: Contents) -> KeyPair:
    """Return the certificate and key of files that were read. InvalidRequest says which file is wrong, and why."""
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
    """Raise InvalidRequest, which names the file, for what is wrong with it, or keeps load_key_pair from loading it."""
    try:
        yield
    except (ValueError, ssl.SSLError) as error:
        raise InvalidRequest(f"{path}: {error}") from None
    except OSError as error:
        raise InvalidRequest(f"{path}: its key cannot be written to a temporary file ({error.strerror})") from None


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
