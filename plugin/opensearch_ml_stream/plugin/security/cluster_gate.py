"""Lets in the users of OpenSearch: the cluster says who calls, and its roles say what they may do."""

import hashlib
import logging
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from opensearch_ml_stream.connectors.errors import Forbidden, MLStreamError, Unauthorized
from opensearch_ml_stream.plugin.security.permissions import (
    SHIPPED_ROLES,
    STATIC_ACTION_GROUPS,
    Permissions,
    actions_of,
    check_permission,
)
from opensearch_ml_stream.plugin.security.presented_credentials import single_header
from opensearch_ml_stream.plugin.security.remembered import Remembered
from opensearch_ml_stream.rest_handlers.callers import Caller, Scope

USER_SECONDS = 30.0
ROLES_SECONDS = 60.0
ADMIN_ROLE = "all_access"  # as in ML Commons, which has no other admin

_MAX_USERS = 10_000
_ROLES = ""  # the one key under which the roles are remembered

log = logging.getLogger(__name__)


class ClusterSecurity(Protocol):
    """The cluster's security plugin. Every method raises Unavailable while the cluster does not respond."""

    async def auth_info(self, authorization: str) -> Mapping[str, Any] | None:
        """Return what `_plugins/_security/authinfo` says of the header `Authorization`; None if it is refused."""
        ...

    async def roles(self) -> Mapping[str, Any]:
        """Return the roles by name, with the service account. Forbidden if it may not read them."""
        ...

    async def action_groups(self) -> Mapping[str, Any]:
        """Return the action groups by name, with the service account. Forbidden if it may not read them."""
        ...


class ClusterGate:
    """Lets in callers whom the cluster knows and whose roles allow an action.

    `configured_roles` are patterns of actions by role, for service accounts that may not read the cluster's roles.
    """

    asks_for_login = True

    def __init__(self, cluster: ClusterSecurity, configured_roles: Mapping[str, tuple[str, ...]]) -> None:
        self._cluster = cluster
        self._configured_roles = {**SHIPPED_ROLES, ADMIN_ROLE: ("*",), **configured_roles}
        self._users = Remembered[bytes, Caller | None](USER_SECONDS, USER_SECONDS, _MAX_USERS)
        self._roles = Remembered[str, Mapping[str, Permissions]](ROLES_SECONDS, ROLES_SECONDS, 1)
        self._digest_key = secrets.token_bytes(32)
        self._warned = False

    async def admit(self, scope: Scope, *actions: str) -> Caller:
        """Return the caller; see `Gate.admit`."""
        authorization = single_header(b"authorization", scope["headers"])
        if authorization is None:
            raise Unauthorized
        digest = hashlib.blake2b(authorization.encode(), key=self._digest_key).digest()
        caller = await self._users.get(digest, lambda: self._ask(authorization))
        if caller is None:
            raise Unauthorized
        permissions = await self._roles.get(_ROLES, self._read_roles)
        check_permission(caller, permissions, actions)
        return caller

    async def _ask(self, authorization: str) -> Caller | None:
        found = await self._cluster.auth_info(authorization)
        return None if found is None else _caller(found)

    async def _read_roles(self) -> Mapping[str, Permissions]:
        try:
            roles, groups = await self._cluster.roles(), await self._cluster.action_groups()
        except Forbidden as error:
            if not self._warned:
                log.warning(
                    "The service account may not read the cluster's roles (%s): those of ML Commons and of the "
                    "setting opensearch_ml_stream.role_permissions hold",
                    error.reason,
                )
            self._warned = True
            return {role: Permissions(patterns) for role, patterns in self._configured_roles.items()}
        self._warned = False
        return read_roles(roles, groups)


def read_roles(roles: Mapping[str, Any], groups: Mapping[str, Any]) -> dict[str, Permissions]:
    """Return what each role allows on the cluster, as the security plugin's API shows roles and action groups."""
    actions = {name: _strings(group, "allowed_actions") for name, group in groups.items()}
    known = {**STATIC_ACTION_GROUPS, **actions}
    return {name: Permissions(actions_of(_strings(role, "cluster_permissions"), known)) for name, role in roles.items()}


def _caller(auth_info: Mapping[str, Any]) -> Caller:
    """Read the response of `authinfo`; MLStreamError if it is none."""
    name = auth_info.get("user_name")
    if not isinstance(name, str):
        raise MLStreamError("The cluster's security plugin does not say who the user is")
    roles = frozenset(_strings(auth_info, "roles"))
    return Caller(name, frozenset(_strings(auth_info, "backend_roles")), roles, is_admin=ADMIN_ROLE in roles)


def _strings(of: object, name: str) -> tuple[str, ...]:
    values: Iterable[object] = of.get(name) or () if isinstance(of, Mapping) else ()
    return tuple(value for value in values if isinstance(value, str)) if not isinstance(values, str) else ()
