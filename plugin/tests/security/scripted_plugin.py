"""A cluster's security plugin: its responses are those of OpenSearch 3.4.0."""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import Forbidden, Unavailable
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.actions import PREDICT_STREAM
from opensearch_ml_stream.rest_handlers.callers import Scope

ROLES: dict[str, dict[str, Any]] = {
    "all_access": {"cluster_permissions": ["*"]},
    "ml_full_access": {"cluster_permissions": ["cluster:admin/opensearch/ml/*", "cluster_monitor"]},
    "predictor": {"cluster_permissions": ["predicting"]},
    "odd": {"cluster_permissions": None},
}
GROUPS: dict[str, dict[str, Any]] = {"predicting": {"allowed_actions": [PREDICT_STREAM]}}
USERS: dict[str, dict[str, Any]] = {
    "admin": {"backend_roles": ["admin"], "roles": ["own_index", "all_access"]},
    "ann": {"backend_roles": ["team-a"], "roles": ["own_index", "ml_full_access"]},
    "pat": {"backend_roles": [], "roles": ["own_index", "predictor", "odd"]},
    "nobody": {"backend_roles": [], "roles": ["own_index"]},
}


class ScriptedPlugin:
    """Its users have their names as passwords, or are named by `x-proxy-user`; `ann` may be anyone.

    It may be `down`, or not `installed`.
    """

    def __init__(self) -> None:
        self.asked: list[Mapping[str, str]] = []
        self.role_reads = 0
        self.users = dict(USERS)
        self.group_actions: dict[str, dict[str, Any]] = dict(GROUPS)
        self.may_read_roles = True
        self.installed = True
        self.down = False
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def is_installed(self) -> bool:
        """Return whether it is there."""
        self._check()
        return self.installed

    async def auth_info(self, headers: Mapping[str, str]) -> Mapping[str, Any] | None:
        """Return what `authinfo` says."""
        self.asked.append(headers)
        await self.may_answer.wait()
        self._check()
        if (name := headers.get("x-proxy-user")) is not None:
            return {"user_name": name, "backend_roles": [headers.get("x-proxy-roles")], "roles": ["own_index"]}
        name, _, password = base64.b64decode(headers["authorization"].removeprefix("Basic ")).decode().partition(":")
        if password != name or name not in self.users:
            return None
        other = headers.get("opendistro_security_impersonate_as", name)
        if other != name and name != "ann":
            raise Forbidden(f"'{name}' is not allowed to impersonate as '{other}'")
        return {"user_name": other, **self.users[other]}

    async def roles(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the roles."""
        self._check()
        self.role_reads += 1
        if not self.may_read_roles:
            raise Forbidden("No permission to access REST API")
        return ROLES

    async def action_groups(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the action groups."""
        return self.group_actions

    def _check(self) -> None:
        if self.down:
            raise Unavailable("down")


class StoreInCluster(SQLiteStore):
    """A store in memory, as if it were in a cluster with the plugin."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.plugin = ScriptedPlugin()

    @property
    def security(self) -> ScriptedPlugin:
        """Return the plugin."""
        return self.plugin


def basic(name: str, password: str | None = None) -> bytes:
    """The value of `Authorization` for a user."""
    return b"Basic " + base64.b64encode(f"{name}:{name if password is None else password}".encode())


def request_of(name: str, password: str | None = None) -> Scope:
    """A request with the login of a user."""
    return {"headers": [(b"authorization", basic(name, password))]}
