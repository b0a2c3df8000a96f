"""Callers: who sends a request, and the protocol of what lets them in."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Scope = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request. `is_admin` is whether access modes of models and connectors do not hold for them."""

    name: str
    backend_roles: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    is_admin: bool = False


ANYONE = Caller("", is_admin=True)
"""The caller where nobody has to log in."""


class Gate(Protocol):
    """What lets callers in."""

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


class OpenGate:
    """Lets everyone in, as nobody has to log in."""

    asks_for_login = False

    async def admit(self, scope: Scope, *actions: str) -> Caller:
        """Return ANYONE."""
        return ANYONE
