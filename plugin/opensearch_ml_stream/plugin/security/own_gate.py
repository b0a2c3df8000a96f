"""Lets in the users and keys of the sidecar's own.

An account is read from the store at most once a second, so that one that was removed is refused within two seconds.
A password is hashed once for all workers, which share what was found right. Names that no user has take as long, and
are refused in the same words, but they stand in no queue of those that users have.
"""

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from opensearch_ml_stream.connectors.errors import Unauthorized
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.refreshing_cache import RefreshingCache
from opensearch_ml_stream.plugin.security.concurrency_limit import ConcurrencyLimit
from opensearch_ml_stream.plugin.security.lockouts import LOCKED_SECONDS, MAX_FAILURES, Lockouts, locked_out
from opensearch_ml_stream.plugin.security.own_accounts import Account, is_name, key_id, read_account, user_id
from opensearch_ml_stream.plugin.security.permissions import (
    SHIPPED_ROLES,
    STATIC_ACTION_GROUPS,
    Permissions,
    actions_of,
    check_permission,
)
from opensearch_ml_stream.plugin.security.presented_credentials import ApiKey, NameAndPassword
from opensearch_ml_stream.plugin.security.right_logins import RightLogins
from opensearch_ml_stream.plugin.security.secret_hashes import is_key_secret, is_password, split_key
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller

FRESH_SECONDS = 1.0
STALE_SECONDS = 30.0  # how long an account stays in force while the store does not respond

ADMIN_ROLE = "ml_full_access"

_MAX_ACCOUNTS = 10_000  # in memory: any id of the right form may be asked for
_MAX_WAITING = 31  # passwords of users, for the one that is checked
_ABSENT_USER_HASH = "scrypt$16384$8$5$AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="


@dataclass(frozen=True, slots=True)
class _Known:
    """A stored account, who it makes of a caller, and what its roles allow."""

    account: Account
    caller: Caller
    granted: tuple[Permissions, ...]


class OwnAccounts:
    """Finds the caller of presented credentials."""

    def __init__(self, store: Store, directory: Path, now: Clock, login_key: bytes | None = None) -> None:
        """`directory` and `login_key` are those that the workers of a server share."""
        self._store = store
        self._lockouts = Lockouts(directory)
        self._lockouts_of_unknown = Lockouts(directory, of_users=False)
        self._logins = RightLogins(directory, login_key)
        self._now = now
        self._accounts = RefreshingCache[str, _Known | None](FRESH_SECONDS, STALE_SECONDS, _MAX_ACCOUNTS)
        self._checks: dict[bytes, asyncio.Task[None]] = {}  # of passwords, by login
        self._tried: Counter[str] = Counter()  # passwords of a user that are checked, or wait for it
        self._hashing = ThreadPoolExecutor(1, thread_name_prefix="password-hash")
        self._checks_at_once = ConcurrencyLimit(1, _MAX_WAITING, None)
        self._turn_of_unknown = asyncio.Lock()
        self._hash_seconds = 0.0  # what the last check took
        self._permissions = {
            role: Permissions(actions_of(patterns, STATIC_ACTION_GROUPS)) for role, patterns in SHIPPED_ROLES.items()
        }

    def close(self) -> None:
        """Release the thread and the files."""
        for shared in (self._logins, self._lockouts, self._lockouts_of_unknown):
            shared.close()
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
        login = self._logins.digest(name, credentials.password, stored)
        if known is None or login not in self._logins:
            check = self._checks.get(login)
            if check is None:
                verify = self._refuse if known is None else self._verify
                check = self._checks[login] = asyncio.create_task(verify(name, credentials.password, stored, login))
                check.add_done_callback(lambda done: self._forget_check(login, done))
            await asyncio.shield(check)  # one who leaves must not take the answer from the others
        return known

    def _forget_check(self, login: bytes, done: asyncio.Task[None]) -> None:
        del self._checks[login]
        if not done.cancelled():
            done.exception()  # looked at, as all who wait may have left

    async def _verify(self, name: str, password: str, stored: str, login: bytes) -> None:
        """Remember a user's password that is right; Unauthorized for another, Throttled after too many of them.

        Whoever is locked out takes nobody's turn, nor does one who tries more at the same time than would lock them
        out.
        """
        self._lockouts.check(name)
        if self._tried[name] >= MAX_FAILURES:
            raise locked_out(LOCKED_SECONDS)
        self._tried[name] += 1
        try:
            async with self._checks_at_once:
                self._lockouts.count_attempt(name)
                is_right = await self._is_password(password, stored)
        finally:
            self._tried[name] -= 1
            if not self._tried[name]:
                del self._tried[name]
        if not is_right:
            raise Unauthorized
        self._lockouts.forget(name)
        self._logins.add(login)

    async def _refuse(self, name: str, password: str, stored: str, login: bytes) -> None:
        """Refuse a name that no user has as `_verify` refuses a wrong password.

        One at a time is hashed, as that takes the time of users; others wait as long as it takes.
        """
        self._lockouts_of_unknown.count_attempt(name)
        if self._turn_of_unknown.locked():
            await asyncio.sleep(self._hash_seconds)
        else:
            async with self._turn_of_unknown:
                await self._is_password(password, stored)
        raise Unauthorized

    async def _is_password(self, password: str, stored: str) -> bool:
        began = monotonic()
        loop = asyncio.get_running_loop()
        is_right = await loop.run_in_executor(self._hashing, is_password, password, stored)
        self._hash_seconds = monotonic() - began
        return is_right

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
