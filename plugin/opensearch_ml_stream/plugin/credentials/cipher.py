"""Cipher: encrypts credentials with the cluster's master key, which is stored in an index shared with ML Commons."""

import base64
import binascii
import os
import time
from collections.abc import Callable
from contextlib import suppress

from opensearch_ml_stream.connectors.errors import Conflict, Internal
from opensearch_ml_stream.plugin.credentials import aws_message_format
from opensearch_ml_stream.plugin.store import Document, Index, Store

_ID = "master_key"
_KEY_LENGTH = 32


class Cipher:
    """Encrypts and decrypts credentials with the master key of the store's cluster.

    The key is read again `cache_ttl_minutes` after it was last read. Errors: Unavailable if the store does not answer,
    Internal if the key or a cipher text cannot be read.
    """

    def __init__(self, store: Store, cache_ttl_minutes: float = 5, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._ttl = cache_ttl_minutes * 60
        self._clock = clock
        self._cached: tuple[float, bytes] | None = None

    async def encrypt(self, text: str) -> str:
        """Return the base64 cipher text of a string. Create the cluster's master key if there is none.

        The key is read again each time: with a key that is no longer the cluster's nobody could decrypt the text.
        """
        self._cached = None
        return aws_message_format.encrypt(await self._key(), text)

    async def decrypt(self, text: str) -> str:
        """Return the string that `encrypt`, or ML Commons, has encrypted."""
        return aws_message_format.decrypt(await self._key(), text)

    async def _key(self) -> bytes:
        now = self._clock()
        if self._cached is not None and now - self._cached[0] < self._ttl:
            return self._cached[1]
        key = _read(await self._document())
        self._cached = (now, key)
        return key

    async def _document(self) -> Document:
        """Return the key's document, created if it is missing; of several created at once the first one counts."""
        document = await self._store.get(Index.CONFIG, _ID)
        if document is None:
            key = base64.b64encode(os.urandom(_KEY_LENGTH)).decode("ascii")
            source = {"master_key": key, "create_time": int(time.time() * 1000)}
            # Conflict: another worker, replica or ML Commons node was faster, and its key counts.
            with suppress(Conflict):
                await self._store.create(Index.CONFIG, source, id=_ID)
            document = await self._store.get(Index.CONFIG, _ID)
        if document is None:
            raise Internal(f"Document {_ID} of index {Index.CONFIG} was deleted while it was read")
        return document


def _read(document: Document) -> bytes:
    try:
        key = base64.b64decode(str(document.source.get("master_key")), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY_LENGTH:
        raise Internal(
            f"Document {_ID} of index {Index.CONFIG} holds no master key: its field master_key must be base64 of "
            f"{_KEY_LENGTH} bytes"
        )
    return key
