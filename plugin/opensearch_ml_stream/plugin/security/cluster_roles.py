"""Roles of the cluster, and what each allows: as the cluster says, or as the settings do where it may not be asked."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import Forbidden
from opensearch_ml_stream.plugin.parallel import wait_for_all
from opensearch_ml_stream.plugin.refreshing_cache import RefreshingCache
from opensearch_ml_stream.plugin.security.permissions import (
    OPENSEARCH_ROLES,
    SHIPPED_ROLES,
    STATIC_ACTION_GROUPS,
    Permissions,
    actions_of,
)
from opensearch_ml_stream.plugin.store import SecurityPlugin

FRESH_SECONDS = 30.0
STALE_SECONDS = 60.0  # how long roles hold altogether, while the cluster does not respond

ADMIN_ROLE = "all_access"  # as in ML Commons, which has no other admin

Patterns = Mapping[str, tuple[str, ...]]

UNREAD_ROLES: dict[str, tuple[str, ...]] = {
    **OPENSEARCH_ROLES,
    "ml_predict_access": SHIPPED_ROLES["ml_predict_access"],
}
"""The roles that hold where the cluster's cannot be read. The sidecar's own have more than OpenSearch's: settings."""

_ALL = ""  # the one key of the cache

log = logging.getLogger(__name__)


class RolePermissions:
    """What each role allows. Patterns are compiled for the roles that somebody has: a cluster may have thousands."""

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
    """The cluster's roles, read again after FRESH_SECONDS.

    `configured` are patterns and action groups by role: with those of OpenSearch they hold where the store's user may
    not read the cluster's.
    """

    def __init__(self, plugin: SecurityPlugin, configured: Patterns) -> None:
        self._plugin = plugin
        self._configured = RolePermissions({**UNREAD_ROLES, **configured}, STATIC_ACTION_GROUPS)
        self._read_roles = RefreshingCache[str, RolePermissions](FRESH_SECONDS, STALE_SECONDS, 1)
        self._is_refused = False

    def known(self) -> RolePermissions | None:
        """Return what the roles allow, if the cluster need not be asked; None if it must be."""
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
                    "The roles of the cluster cannot be read (%s): those that OpenSearch ships hold, and those of the "
                    "setting opensearch_ml_stream.role_permissions",
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
