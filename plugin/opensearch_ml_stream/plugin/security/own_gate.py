"""Authenticate the users and keys of the sidecar's own.

An account is read from the store at most once a second, so that a removed one is refused within two seconds. Hashing a
password costs 130 ms, so it is hashed once for all workers, which share verified logins. A login is stored as a digest
of name, password and stored hash, keyed with a secret that is only in the processes' memory: the shared file is of no
use for guessing passwords. A name without a user takes as long and gets the same error, but does not wait in the users'
queue.
"""

import asyncio
import hashlib
import logging
import secrets
from collections import Counter, OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from time import monotonic

from opensearch_ml_stream.connectors.errors import MLStreamError, Unauthorized
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.refreshing_cache import RefreshingCache
from opensearch_ml_stream.plugin.security.concurrency_limit import ConcurrencyLimit
from opensearch_ml_stream.plugin.security.lockouts import LOCKED_SECONDS, MAX_FAILURES, Lockouts, locked_out
from opensearch_ml_stream.plugin.security.own_accounts import (
    Account,
    has_accounts,
    is_name,
    key_id,
    read_account,
    user_id,
)
from opensearch_ml_stream.plugin.security.permissions import (
    SHIPPED_ROLES,
    STATIC_ACTION_GROUPS,
    Permissions,
    actions_of,
    check_permission,
)
from opensearch_ml_stream.plugin.security.presented_credentials import (
    ApiKey,
    NameAndPassword,
    presented_credentials,
    without_credentials,
)
from opensearch_ml_stream.plugin.security.secret_hashes import is_key_secret, is_password, split_key
from opensearch_ml_stream.plugin.shared.table import SharedTable
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.actions import PASS_THROUGH
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller, Scope

_MAX_LOGINS = 10_000  # in a worker's memory
_LEVELS = 2  # of the table: 12,000 logins
_DIGEST_SIZE = 16
_RECORD = Struct("d")  # when the password was found right (CLOCK_MONOTONIC)
_KEPT_SECONDS = 24 * 3600.0  # while another needs the place
FRESH_SECONDS = 1.0
STALE_SECONDS = 30.0  # how long an account stays in force while the store does not respond
ADMIN_ROLE = "ml_full_access"
LOOK_SECONDS = 0.8  # waited for the store to say whether it has an account
_MAX_ACCOUNTS = 10_000  # in memory: any id of the right form may be asked for
_MAX_WAITING = 31  # passwords of users, for the one that is checked
_ABSENT_USER_HASH = "scrypt$16384$8$5$AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
log = logging.getLogger(__name__)


class VerifiedLogins:
    """Remembers logins whose password was verified, on any worker of a server.

    `directory` and `key` are shared by the workers of a server; without a key nothing is shared.
    """

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


@dataclass(frozen=True, slots=True)
class _Known:
    """A stored account, its Caller, and the permissions of its roles."""

    account: Account
    caller: Caller
    granted: tuple[Permissions, ...]


class OwnLogins:
    """Checks the credentials of a request against the stored accounts."""

    def __init__(self, store: Store, directory: Path, now: Clock, login_key: bytes | None = None) -> None:
        """`directory` and `login_key` are those that the workers of a server share."""
        self._store = store
        self._lockouts = Lockouts(directory)
        self._lockouts_of_unknown = Lockouts(directory, of_users=False)
        self._logins = VerifiedLogins(directory, login_key)
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
        """Check a user's password and remember it if right; Unauthorized if wrong, Throttled after too many failures.

        Callers who are locked out do not wait in the queue, nor do those who try more passwords at the same time than
        would lock them out.
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
        """Refuse a name without a user, as `_verify` refuses a wrong password.

        One password at a time is hashed, so that it takes as long as a user's; others wait for the same time.
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


class OwnGate:
    """Admits the users and keys of the sidecar's own, and everyone while there are none.

    `is_closed` is whether there are any, None until the store has answered.
    """

    def __init__(self, accounts: OwnLogins, store: Store, *, is_closed: bool | None) -> None:
        self._accounts = accounts
        self._store = store
        self.is_closed = is_closed

    @property
    def asks_for_login(self) -> bool:
        """Whether nobody is let in without credentials; False while that is not known."""
        return self.is_closed is True

    @property
    def is_settled(self) -> bool:
        """Whether nothing can change any more about who decides."""
        return self.is_closed is True

    async def admit(self, scope: Scope, *actions: str) -> Caller:
        """Return the caller; see `Gate.admit`."""
        if self.is_closed is None:
            await self._look()  # or the store's error: nobody is let in unasked
        if not self.is_closed:
            return ANYONE
        return await self._accounts.admit(presented_credentials(scope["headers"]), *actions)

    async def admit_to_cluster(self, scope: Scope) -> Scope:
        """Return the request of an admitted caller without its login, which the cluster does not know."""
        await self.admit(scope, PASS_THROUGH)
        return without_credentials(scope) if self.is_closed else scope

    async def look(self) -> None:
        """Close the gate if the store has an account, for as long as this process runs.

        While the store does not respond nothing changes: nobody can add an account then.
        """
        with suppress(MLStreamError, TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await self._look()
        if self.is_closed:
            log.info("Callers log in: this sidecar has users or keys of its own")

    async def _look(self) -> None:
        found = await has_accounts(self._store)
        self.is_closed = self.is_closed or found  # never opened again, whichever of two looks ends last
