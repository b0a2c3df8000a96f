"""Logins whose password was found right, on any worker of a server: hashing it again would cost each of them 130 ms.

A login is a digest of name, password and the stored hash that it fits. Its key is in the memory of the processes alone:
nobody can try passwords on the file that they share.
"""

import hashlib
import secrets
from collections import OrderedDict
from pathlib import Path
from struct import Struct
from time import monotonic

from opensearch_ml_stream.plugin.shared.table import SharedTable

_MAX_LOGINS = 10_000  # in a worker's memory
_LEVELS = 2  # of the table: 12,000 logins
_DIGEST_SIZE = 16
_RECORD = Struct("d")  # when the password was found right (CLOCK_MONOTONIC)
_KEPT_SECONDS = 24 * 3600.0  # while another needs the place


class RightLogins:
    """Remembers logins. `directory` and `key` are shared by the workers of a server; without a key nothing is."""

    def __init__(self, directory: Path, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._shared = None if key is None else SharedTable(directory / "right-logins", _RECORD, _LEVELS)

    def close(self) -> None:
        """Let go of the file."""
        if self._shared is not None:
            self._shared.close()

    def digest(self, name: str, password: str, stored: str) -> bytes:
        """Return what stands for a login."""
        presented = f"{name}\0{password}\0{stored}".encode("utf-8", "surrogateescape")
        return hashlib.blake2b(presented, key=self._key, digest_size=_DIGEST_SIZE).digest()

    def __contains__(self, digest: bytes) -> bool:
        """Whether the login was added, here or by another worker."""
        if digest in self._known:
            self._known.move_to_end(digest)
            return True
        if self._is_shared(digest):
            self._remember(digest)
            return True
        return False

    def add(self, digest: bytes) -> None:
        """Add a login. Where the file takes no more, the other workers check its password themselves."""
        self._remember(digest)
        if (table := self._shared) is not None:
            try:
                with table:
                    (place,) = table.places([digest], lambda record: record[0] < monotonic() - _KEPT_SECONDS)
                    table.write(place, monotonic())
            except OSError:
                return

    def _remember(self, digest: bytes) -> None:
        self._known[digest] = None
        if len(self._known) > _MAX_LOGINS:
            self._known.popitem(last=False)

    def _is_shared(self, digest: bytes) -> bool:
        if (table := self._shared) is None:
            return False
        try:
            with table:
                table.prepare()
                return table.find(digest) != 0
        except OSError:
            return False
