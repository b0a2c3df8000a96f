"""Users and keys of the sidecar's own: their documents, and how they are added, listed and removed.

A document is `{"kind": "user"|"key", "name", "roles", "secret", "created_time"[, "expires_time"]}`; `secret` is a hash,
times are milliseconds since 1970. A key's name describes its use; a key has roles of its own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opensearch_ml_stream.connectors.errors import Conflict, InvalidRequest, NotFound
from opensearch_ml_stream.plugin.security.permissions import SHIPPED_ROLES
from opensearch_ml_stream.plugin.security.secret_hashes import MIN_PASSWORD_CHARACTERS, NewKey, hash_password, new_key
from opensearch_ml_stream.plugin.store import Document, Index, Store

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")
_MAX_LISTED = 10_000


@dataclass(frozen=True, slots=True)
class Account:
    """A user or a key, as stored. `expires` in milliseconds since 1970, None for never."""

    id: str
    kind: str
    name: str
    roles: tuple[str, ...]
    secret: str = field(repr=False)
    expires: int | None = None

    def is_expired(self, now: int) -> bool:
        """Whether it is not valid any more."""
        return self.expires is not None and self.expires <= now


def is_name(name: str) -> bool:
    """Whether a user or a key can have that name."""
    return _NAME.fullmatch(name) is not None


def user_id(name: str) -> str:
    """Return the id of a user's document."""
    return f"user:{name}"


def key_id(id: str) -> str:
    """Return the id of a key's document."""
    return f"key:{id}"


def read_account(document: Document) -> Account | None:
    """Read a stored account; None for one that cannot be read, which then lets nobody in."""
    source = document.source
    kind, name, roles, secret, expires = (
        source.get(key) for key in ("kind", "name", "roles", "secret", "expires_time")
    )
    if not (isinstance(kind, str) and isinstance(name, str) and isinstance(secret, str) and isinstance(roles, list)):
        return None
    if expires is not None and (isinstance(expires, bool) or not isinstance(expires, int)):
        return None
    return Account(document.id, kind, name, tuple(str(role) for role in roles), secret, expires)


async def add_user(store: Store, name: str, password: str, role: str, now: int) -> None:
    """Add a user; several roles are separated by commas.

    InvalidRequest for a name, password or role that cannot be; Conflict if the name is taken.
    """
    _check(name, role)
    _check_password(password)
    source = _source("user", name, role, hash_password(password), now)
    try:
        await store.create(Index.ACCOUNT, source, user_id(name))
    except Conflict:
        raise Conflict(f"There is a user {name} already; remove it first") from None


async def change_password(store: Store, name: str, password: str) -> None:
    """Change a user's password. NotFound without that user, InvalidRequest for a password that is too short."""
    _check_password(password)
    document = await store.get(Index.ACCOUNT, user_id(name))
    if document is None:
        raise NotFound(f"There is no user {name}")
    source = {**document.source, "secret": hash_password(password)}
    await store.put(
        Index.ACCOUNT, document.id, source, if_seq_no=document.seq_no, if_primary_term=document.primary_term
    )


async def create_key(store: Store, name: str, role: str, now: int, expires: int | None = None) -> NewKey:
    """Store a new key and return it, the only time that its value is known; `role` as in `add_user`."""
    _check(name, role)
    key = new_key()
    source = _source("key", name, role, key.hash, now)
    await store.create(Index.ACCOUNT, source | ({} if expires is None else {"expires_time": expires}), key_id(key.id))
    return key


async def remove_account(store: Store, id: str) -> None:
    """Remove a user or a key; NotFound if there is none."""
    written = await store.delete(Index.ACCOUNT, id)
    if written.response.get("result") == "not_found":
        kind, _, name = id.partition(":")
        raise NotFound(f"There is no {kind} {name}")


async def accounts(store: Store, kind: str) -> list[Account]:
    """Return the users or the keys, by name (at most 10,000)."""
    body = {"query": {"term": {"kind": kind}}, "size": _MAX_LISTED, "sort": [{"name": "asc"}]}
    found = (await store.search(Index.ACCOUNT, body))["hits"]["hits"]
    documents = (Document(hit["_id"], hit["_source"], hit["_version"], 0, 0) for hit in found)
    return [account for document in documents if (account := read_account(document)) is not None]


async def has_accounts(store: Store) -> bool:
    """Whether there is any user or key."""
    found: Mapping[str, Any] = await store.search(Index.ACCOUNT, {"size": 1})
    return bool(found["hits"]["hits"])


def _check(name: str, role: str) -> None:
    if not is_name(name):
        raise InvalidRequest(
            "A name begins with a letter or digit and has at most 128 characters of a-z A-Z 0-9 . _ @ + -"
        )
    for each in role.split(","):
        if each not in SHIPPED_ROLES:
            raise InvalidRequest(f"There is no role {each}; the roles are {', '.join(SHIPPED_ROLES)}")


def _check_password(password: str) -> None:
    if len(password) < MIN_PASSWORD_CHARACTERS:
        raise InvalidRequest(f"A password needs at least {MIN_PASSWORD_CHARACTERS} characters")


def _source(kind: str, name: str, role: str, secret: str, now: int) -> dict[str, Any]:
    return {"kind": kind, "name": name, "roles": role.split(","), "secret": secret, "created_time": now}
