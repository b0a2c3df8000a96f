"""Authenticate users of OpenSearch: the cluster says who calls, and its roles say what they may do.

The answer for the same credentials is kept for FRESH_SECONDS. Failed logins are not counted and no user is locked out
here: the cluster does that, as it gets every attempt that differs from those of the last seconds.
"""

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import Forbidden, Unauthorized, Unavailable
from opensearch_ml_stream.plugin.parallel import wait_for_all
from opensearch_ml_stream.plugin.refreshing_cache import RecentKeys, RefreshingCache
from opensearch_ml_stream.plugin.security.caller_headers import TrustedProxy, caller_headers
from opensearch_ml_stream.plugin.security.concurrency_limit import ConcurrencyLimit
from opensearch_ml_stream.plugin.security.permissions import (
    OPENSEARCH_ROLES,
    SHIPPED_ROLES,
    STATIC_ACTION_GROUPS,
    Permissions,
    actions_of,
    check_permission,
)
from opensearch_ml_stream.plugin.store import SecurityPlugin
from opensearch_ml_stream.rest_handlers.callers import Caller, Scope

ROLES_FRESH_SECONDS = 30.0
ROLES_STALE_SECONDS = 60.0  # how long roles hold altogether, while the cluster does not respond

ADMIN_ROLE = "all_access"  # as in ML Commons, which has no other admin

Patterns = Mapping[str, tuple[str, ...]]

UNREAD_ROLES: dict[str, tuple[str, ...]] = {
    **OPENSEARCH_ROLES,
    "ml_predict_access": SHIPPED_ROLES["ml_predict_access"],
}
"""The roles that hold where the cluster's cannot be read. The sidecar's own have more than OpenSearch's: settings."""

_ALL = ""  # the one key of the cache
FRESH_SECONDS = 10.0
STALE_SECONDS = 30.0  # how long a caller is let in altogether, while the cluster does not respond
REFUSED_SECONDS = 5.0
# Questions of a worker about callers whom it has not let in before: a password costs the cluster half a second of CPU.
MAX_QUESTIONS, MAX_WAITING, WAIT_SECONDS = 8, 256, 3.0
CHALLENGE = 'Basic realm="OpenSearch Security"'  # as the security plugin sends it
_MAX_CALLERS = 10_000
log = logging.getLogger(__name__)


class RolePermissions:
    """What each role allows. Patterns are compiled when a role is first used: a cluster may have thousands of roles."""

    def __init__(self, patterns: Patterns, groups: Patterns) -> None:
        self._patterns = patterns
        self._groups = groups
        self._compiled: dict[str, Permissions] = {}

    def granted_to(self, roles: Iterable[str]) -> list[Permissions]:
        """Return what these roles allow; a role that is not known allows nothing."""
        return [self._compiled.get(role) or self._compile(role) for role in roles if role in self._patterns]

    def _compile(self, role: str) -> Permissions:
        permissions = self._compiled[role] = Permissions(actions_of(self._patterns[role], self._groups))
        return permissions


class ClusterRoles:
    """The cluster's roles, read again after ROLES_FRESH_SECONDS.

    `configured` are patterns and action groups by role. They hold, with those that OpenSearch ships, where the store's
    user may not read the cluster's roles.
    """

    def __init__(self, plugin: SecurityPlugin, configured: Patterns) -> None:
        self._plugin = plugin
        self._configured = RolePermissions({**UNREAD_ROLES, **configured}, STATIC_ACTION_GROUPS)
        self._read_roles = RefreshingCache[str, RolePermissions](ROLES_FRESH_SECONDS, ROLES_STALE_SECONDS, 1)
        self._is_refused = False

    def known(self) -> RolePermissions | None:
        """Return what the roles allow if it is cached and fresh, else None."""
        return self._read_roles.fresh(_ALL)

    async def permissions(self) -> RolePermissions:
        """Return what the roles allow now; Unavailable if the cluster does not respond."""
        return await self._read_roles.get(_ALL, self._read)

    async def _read(self) -> RolePermissions:
        asked = asyncio.create_task(self._plugin.roles()), asyncio.create_task(self._plugin.action_groups())
        try:
            await wait_for_all(*asked)
        except Forbidden as error:
            if not self._is_refused:
                log.warning(
                    "The roles of the cluster cannot be read (%s): the roles that OpenSearch ships are used, and those "
                    "of the setting opensearch_ml_stream.role_permissions",
                    error.reason,
                )
            self._is_refused = True
            return self._configured
        self._is_refused = False
        roles, groups = (task.result() for task in asked)
        allowed = {name: strings(group.get("allowed_actions")) for name, group in groups.items()}
        granted = {name: strings(role.get("cluster_permissions")) for name, role in roles.items()}
        return RolePermissions(granted, {**STATIC_ACTION_GROUPS, **allowed})


def strings(values: Any) -> tuple[str, ...]:
    """Return the strings of a list; none if it is no list."""
    return tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else ()


class ClusterGate:
    """Admits callers whom the cluster knows and whose roles allow an action.

    `configured_roles` hold where the store's user may not read the cluster's. `proxy` may name users in headers. A
    caller who is not cached waits at most `seconds`.
    """

    def __init__(
        self,
        plugin: SecurityPlugin,
        configured_roles: Patterns | None = None,
        proxy: TrustedProxy | None = None,
        seconds: float = 4.5,
    ) -> None:
        self._plugin = plugin
        self._seconds = seconds
        self._proxy = proxy
        self._roles = ClusterRoles(plugin, configured_roles or {})
        self._callers = RefreshingCache[bytes, Caller](FRESH_SECONDS, STALE_SECONDS, _MAX_CALLERS)
        self._refused = RecentKeys[bytes](REFUSED_SECONDS, _MAX_CALLERS)
        self._digest_key = secrets.token_bytes(32)
        self._questions = ConcurrencyLimit(MAX_QUESTIONS, MAX_WAITING, WAIT_SECONDS)

    @property
    def asks_for_login(self) -> bool:
        """Whether every request needs credentials of its caller; a proxy may add them to any request."""
        return self._proxy is None

    async def admit(self, scope: Scope, *actions: str) -> Caller:
        """Return the caller; see `Gate.admit`."""
        try:
            headers = caller_headers(scope, self._proxy)
            if (known := self._roles.known()) is not None:
                caller, permissions = await self._caller(headers), known
            else:  # both are asked for at the same time
                caller, permissions = await asyncio.gather(self._caller(headers), self._roles.permissions())
        except Unauthorized:
            raise Unauthorized(CHALLENGE) from None
        except Unavailable as error:
            raise unknown_caller(error) from None
        check_permission(caller, permissions.granted_to(caller.roles), actions)
        return caller

    async def admit_to_cluster(self, scope: Scope) -> Scope:
        """Return the request unchanged: the cluster authenticates the caller itself."""
        return scope

    async def _caller(self, headers: Mapping[str, str] | None) -> Caller:
        if headers is None:
            raise Unauthorized
        digest = self._digest(headers)
        if digest in self._refused:
            raise Unauthorized
        return await self._callers.get(digest, lambda: self._ask(headers, digest))

    async def _ask(self, headers: Mapping[str, str], digest: bytes) -> Caller:
        """Ask the cluster who the caller is; Unauthorized if unknown, Throttled with too many questions open."""
        if digest in self._callers:
            auth_info = await self._plugin.auth_info(headers)
        else:
            try:
                async with asyncio.timeout(self._seconds), self._questions:
                    auth_info = await self._plugin.auth_info(headers)
            except TimeoutError:
                raise Unavailable(f"no answer within {self._seconds:g} s") from None
        if auth_info is None:
            self._refused.add(digest)
            raise Unauthorized
        return _caller(auth_info)

    def _digest(self, headers: Mapping[str, str]) -> bytes:
        """Return a keyed digest of the credentials, to keep in memory; no header holds a line end, the separator."""
        lines = "\n".join(f"{name}:{value}" for name, value in headers.items())
        return hashlib.blake2b(lines.encode(), key=self._digest_key).digest()


def unknown_caller(cause: Unavailable) -> Unavailable:
    """Return the error while the cluster does not respond; the cause, with its address, is only logged."""
    log.warning("OpenSearch cannot authenticate callers now: %s", cause.reason)
    return Unavailable("OpenSearch cannot authenticate the caller now; see the log of the sidecar")


def _caller(auth_info: Mapping[str, Any]) -> Caller:
    roles = frozenset(strings(auth_info.get("roles")))
    backend_roles = frozenset(strings(auth_info.get("backend_roles")))
    return Caller(auth_info["user_name"], backend_roles, roles, is_admin=ADMIN_ROLE in roles)
