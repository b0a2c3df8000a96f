"""Callers: who sends a request, and the gates that admit them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest
from opensearch_ml_stream.rest_handlers.actions import ML_ACTIONS

_TENANT_HEADER = b"x-tenant-id"
_TENANT_ID = re.compile(rb"[!-~]{1,512}")

Scope = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request. For one who `is_admin`, access modes of models and connectors do not apply.

    `tenant_id` is None where there are no tenants. It holds for admins too: what is another tenant's is not theirs.
    """

    name: str
    backend_roles: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    is_admin: bool = False
    tenant_id: str | None = None

    @property
    def is_anyone(self) -> bool:
        """Whether the caller has not logged in, and so cannot own a document."""
        return not self.name

    def check_tenant(self, document: Mapping[str, Any]) -> None:
        """Raise Forbidden for a stored document of another tenant, or of none."""
        if self.tenant_id is not None and document.get("tenant_id") != self.tenant_id:
            raise Forbidden("You don't have permission to access this resource")

    @property
    def tenant_fields(self) -> dict[str, str]:
        """The fields that store the tenant in a document which the caller creates."""
        return {} if self.tenant_id is None else {"tenant_id": self.tenant_id}


ANYONE = Caller("", is_admin=True)
"""The caller where nobody has to log in."""


class Gate(Protocol):
    """Admits callers."""

    @property
    def asks_for_login(self) -> bool:
        """Whether nobody is let in without credentials."""
        ...

    async def admit(self, scope: Scope, *actions: str) -> Caller:
        """Return the caller of a request who may do one of the actions.

        Unauthorized (401) without valid credentials, Forbidden (403) without the permission, Throttled (429) while
        the user is locked out, Unavailable (503) while it cannot be decided.
        """
        ...


class PassingGate(Gate, Protocol):
    """A gate that also decides which requests go on to the cluster of the store."""

    async def admit_to_cluster(self, scope: Scope) -> Scope:
        """Return the request as it may go on to the cluster: with its caller's credentials, but none of the sidecar's.

        Errors as of `admit`. Where the users are the cluster's, nothing is asked here: the cluster decides.
        """
        ...


class OpenGate:
    """Lets everyone in, as nobody has to log in."""

    asks_for_login = False

    async def admit(self, scope: Scope, *actions: str) -> Caller:
        """Return ANYONE."""
        return ANYONE

    async def admit_to_cluster(self, scope: Scope) -> Scope:
        """Return the request as it came."""
        return scope


class TenantGate:
    """Asks for the header `X-Tenant-Id` behind another gate, for every action of ML Commons.

    The header is what the caller says: whoever lets tenants call has to set it in front of this server.
    """

    def __init__(self, gate: PassingGate) -> None:
        self._gate = gate

    @property
    def asks_for_login(self) -> bool:
        """Whether nobody is let in without credentials."""
        return self._gate.asks_for_login

    async def admit(self, scope: Scope, *actions: str) -> Caller:
        """Return the caller with their tenant; see `Gate.admit`. Forbidden also without the header."""
        caller = await self._gate.admit(scope, *actions)
        if not any(action.startswith(ML_ACTIONS) for action in actions):
            return caller
        return replace(caller, tenant_id=_tenant_id(scope))

    async def admit_to_cluster(self, scope: Scope) -> Scope:
        """Return the request; see `PassingGate.admit_to_cluster`. The cluster's own APIs know no tenants."""
        return await self._gate.admit_to_cluster(scope)


def _tenant_id(scope: Scope) -> str:
    values = [value.strip() for name, value in scope["headers"] if name == _TENANT_HEADER]
    if not values or not values[0]:
        raise Forbidden("Tenant ID header is missing or has no value")
    if len(values) > 1 or not _TENANT_ID.fullmatch(values[0]):
        raise InvalidRequest("X-Tenant-Id must be given once, with at most 512 visible ASCII characters")
    return str(values[0], "ascii")
