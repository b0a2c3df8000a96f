"""Cipher: encrypts credentials with the cluster's master key, which is stored in an index shared with ML Commons."""

import base64
import binascii
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from hashlib import sha256
from typing import Any

from opensearch_ml_stream.connectors.errors import Internal
from opensearch_ml_stream.plugin.credentials import aws_message_format
from opensearch_ml_stream.plugin.refreshing_cache import RefreshingCache
from opensearch_ml_stream.plugin.store import Document, Index, Store, get_or_create

_ID = "master_key"
_KEY_LENGTH = 32
_MAX_KEYS = 1_000  # in memory: callers can make up any number of tenants


class Cipher:
    """Encrypts and decrypts credentials with the master key of the store's cluster, or of one tenant in it.

    A key is held for `cache_ttl_minutes`, and read again before that while it is used. Errors: Unavailable if the
    store does not respond, Internal if the key or a cipher text cannot be read.
    """

    def __init__(self, store: Store, cache_ttl_minutes: float = 5) -> None:
        self._store = store
        self._tenant_id: str | None = None
        seconds = cache_ttl_minutes * 60
        self._keys = RefreshingCache[str, bytes](seconds, seconds, _MAX_KEYS)

    def of(self, tenant_id: str | None) -> "Cipher":
        """Return the cipher of a tenant; None stands for the cluster, where there are no tenants."""
        cipher = copy(self)  # with the same keys in memory
        cipher._tenant_id = tenant_id
        return cipher

    async def encrypt(self, text: str) -> str:
        """Return the base64 cipher text of a string; see `encrypt_all`."""
        return (await self.encrypt_all({"": text}))[""]

    async def encrypt_all(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Return the base64 cipher texts of strings. Create the master key if there is none.

        The key is read again each time: texts encrypted with an outdated key could not be decrypted.
        """
        if not texts:
            return {}
        key = await self._read()
        self._keys.put(self._id, key)
        return {name: aws_message_format.encrypt(key, text) for name, text in texts.items()}

    async def read_ahead(self) -> None:
        """Read the key that `decrypt` is going to need, if it is there."""
        if self._keys.fresh(self._id) is not None:
            return
        if (document := await self._store.get(Index.CONFIG, self._id)) is not None:
            with suppress(Internal):  # which `decrypt` raises, if there is anything to decrypt
                self._keys.put(self._id, _key_in(document))

    async def decrypt(self, text: str) -> str:
        """Return the string that `encrypt`, or ML Commons, has encrypted."""
        return aws_message_format.decrypt(await self._keys.get(self._id, self._read), text)

    @property
    def _id(self) -> str:
        return _ID if self._tenant_id is None else f"{_ID}_{_digest(self._tenant_id)}"

    async def _read(self) -> bytes:
        """Read the key, created if it is missing; of several created at once the first one counts."""
        return _key_in(await get_or_create(self._store, Index.CONFIG, self._id, self._new_source))

    def _new_source(self) -> Mapping[str, Any]:
        key = base64.b64encode(os.urandom(_KEY_LENGTH)).decode("ascii")
        tenant = {} if self._tenant_id is None else {"tenant_id": self._tenant_id}
        return {"master_key": key, "create_time": int(time.time() * 1000), **tenant}


def _digest(tenant_id: str) -> str:
    """Return what ML Commons names a tenant's key by (its EncryptorImpl.hashString)."""
    return base64.urlsafe_b64encode(sha256(tenant_id.encode()).digest()).decode("ascii")


def _key_in(document: Document) -> bytes:
    try:
        key = base64.b64decode(str(document.source.get("master_key")), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY_LENGTH:
        raise Internal(
            f"Document {document.id} of index {Index.CONFIG} holds no master key: its field master_key must be base64 "
            f"of {_KEY_LENGTH} bytes"
        )
    return key
