"""Lets in the users and keys of the sidecar's own.

An account is read from the store at most once a second, so that one that was removed is refused within two seconds.
A password is hashed once for each worker; what was found right is remembered by a keyed digest of what was presented.
"""

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from opensearch_ml_stream.connectors.errors import Unauthorized
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.remembered import Remembered
from opensearch_ml_stream.plugin.security.lockouts import Lockouts
from opensearch_ml_stream.plugin.security.own_accounts import Account, is_name, key_id, read_account, user_id
from opensearch_ml_stream.plugin.security.permissions import (
    SHIPPED_ROLES,
    STATIC_ACTION_GROUPS,
    Permissions,
    actions_of,
    check_permission,
)
from opensearch_ml_stream.plugin.security.presented_credentials import ApiKey, NameAndPassword
from opensearch_ml_stream.plugin.security.secret_hashes import is_key_secret, is_password, split_key
from opensearch_ml_stream.plugin.security.turns import Turns
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller

FRESH_SECONDS = 1.0
STALE_SECONDS = 30.0  # how long an account stays in force while the store does not respond

ADMIN_ROLE = "ml_full_access"

_MAX_ACCOUNTS = 10_000  # in memory: any id of the right form may be asked for
_MAX_WAITING = 31  # for the one password that is checked
_ABSENT_USER_HASH = "scrypt$16384$8$5$AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="


@dataclass(frozen=True, slots=True)
class _Known:
    """A stored account, who it makes of a caller, and what its roles allow."""

    account: Account
    caller: Caller
    granted: tuple[Permissions, ...]


class OwnAccounts:
    """Finds the caller of presented credentials."""

    def __init__(self, store: Store, lockouts: Lockouts, now: Clock) -> None:
        self._store = store
        self._lockouts = lockouts
        self._now = now
        self._accounts = Remembered[str, _Known | None](FRESH_SECONDS, STALE_SECONDS, _MAX_ACCOUNTS)
        self._verified: OrderedDict[bytes, str] = OrderedDict()  # what was presented -> the hash that it fits
        self._digest_key = secrets.token_bytes(32)
        self._hashing = ThreadPoolExecutor(1, thread_name_prefix="password-hash")
        self._turns = Turns(1, _MAX_WAITING, None)
        self._permissions = {
            role: Permissions(actions_of(patterns, STATIC_ACTION_GROUPS)) for role, patterns in SHIPPED_ROLES.items()
        }

    def close(self) -> None:
        """Release the thread."""
        self._hashing.shutdown(cancel_futures=True)

    async def admit(self, credentials: NameAndPassword | ApiKey | None, *actions: str) -> Caller:
        """Return the caller who may do one of the actions; see `Gate.admit` for the errors."""
        if credentials is None:
            raise Unauthorized
        if isinstance(credentials, ApiKey):
            known = await self._account_of_key(credentials.value)
        else:
            known = await self._account_of_user(credentials)
        if known is None or known.account.is_expired(self._now()):
            raise Unauthorized
        check_permission(known.caller, known.granted, actions)
        return known.caller

    async def _account_of_key(self, value: str) -> _Known | None:
        parts = split_key(value)
        if parts is None:
            return None
        id, secret = parts
        id = key_id(id)
        known = self._accounts.fresh(id) or await self._account(id)
        return known if known is not None and is_key_secret(secret, known.account.secret) else None

    async def _account_of_user(self, credentials: NameAndPassword) -> _Known | None:
        name = credentials.name
        known = await self._account(user_id(name)) if is_name(name) else None  # others the store may not take as ids
        stored = known.account.secret if known is not None else _ABSENT_USER_HASH
        presented = f"{name}\0{credentials.password}".encode("utf-8", "surrogateescape")
        digest = hashlib.blake2b(presented, key=self._digest_key).digest()
        if not self._is_verified(digest, stored):
            self._lockouts.check(name)  # whoever is locked out takes nobody's turn
            async with self._turns.turn():
                if not self._is_verified(digest, stored):
                    await self._verify(name, credentials.password, digest, stored, exists=known is not None)
        return known

    def _is_verified(self, digest: bytes, stored: str) -> bool:
        if self._verified.get(digest) != stored:
            return False
        self._verified.move_to_end(digest)
        return True

    async def _verify(self, name: str, password: str, digest: bytes, stored: str, *, exists: bool) -> None:
        """Remember a password that is right; Unauthorized for another, Throttled after too many of them.

        What is absent takes as long. A locked name is looked for here, in turn, so that guesses that came at the same
        time are not all tried.
        """
        self._lockouts.check(name)
        is_right = await asyncio.get_running_loop().run_in_executor(self._hashing, is_password, password, stored)
        if not is_right or not exists:
            self._lockouts.count_failure(name)
            raise Unauthorized
        self._lockouts.forget(name)
        self._verified[digest] = stored
        if len(self._verified) > _MAX_ACCOUNTS:
            self._verified.popitem(last=False)

    async def _account(self, id: str) -> _Known | None:
        """Return the stored account, as it was at most FRESH_SECONDS ago."""

        async def read() -> _Known | None:
            document = await self._store.get(Index.ACCOUNT, id)
            account = None if document is None else read_account(document)
            return None if account is None else self._known(account)

        return await self._accounts.get(id, read)

    def _known(self, account: Account) -> _Known:
        roles = frozenset(account.roles)
        caller = Caller(account.name, roles=roles, is_admin=ADMIN_ROLE in roles)
        return _Known(account, caller, tuple(self._permissions[role] for role in roles & self._permissions.keys()))
