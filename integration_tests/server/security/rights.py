"""The table of rights: which users have what each route and each gRPC method needs (`needs.py`).

Its rows are those that a port itself says it has; one that the table lacks fails the tests.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from integration_tests.server.security.needs import EVERYONE, AllOf, Needs
from integration_tests.support.secured.secured_cluster import PASSWORD

Login = Mapping[str, str]
"""The headers of a request, or the metadata of a call, that say who calls."""

NOBODY: Login = {}
"""Whoever does not log in."""


def basic(name: str, password: str = PASSWORD) -> Login:
    return {"authorization": "Basic " + b64encode(f"{name}:{password}".encode()).decode()}


def bearer(key: str) -> Login:
    return {"authorization": f"Bearer {key}"}


def api_key(key: str) -> Login:
    return {"x-api-key": key}


@dataclass(frozen=True, slots=True)
class User:
    """A user of the table with the password of all, and the actions that the roles of the user allow."""

    name: str
    allowed: frozenset[str]
    backend_roles: str = ""

    def may(self, needs: Needs | None) -> bool:
        """Whether the user may call what needs that."""
        if isinstance(needs, AllOf):
            return self.allowed.issuperset(needs)
        return not needs or not self.allowed.isdisjoint(needs)

    def refusal(self, needs: Needs) -> str:
        """The reason of a refusal, as OpenSearch has it."""
        user = f"User [name={self.name}, backend_roles=[{self.backend_roles}], requestedTenant=null]"
        named = next((need for need in needs if need not in self.allowed), needs[0])
        return f"no permissions for [{named}] and {user}"


@dataclass(frozen=True, slots=True)
class Answer:
    """How a port takes a request: of an unknown or a locked-out caller, one who may not, one who may.

    `reason` is why one is refused, or what went wrong.
    """

    kind: Literal["unknown", "locked out", "refused", "let in", "failed"]
    reason: str = ""


class Port(Protocol):
    """A port of a sidecar. Its rows are routes, or methods; `needs` is its part of the table."""

    @property
    def needs(self) -> Mapping[str, Needs | None]: ...

    def rows(self, login: Login) -> Sequence[str]:
        """All that the port says it has."""
        ...

    def spellings(self, row: str) -> Sequence[str]:
        """The ways to write a row that clients have."""
        ...

    def ask(self, row: str, login: Login) -> Answer:
        """Asks any worker for a row, of a model that does not exist, in a way that changes nothing."""
        ...


def broken_rights(port: Port, rows: Sequence[str], user: User, login: Login | None = None) -> list[str]:
    """What the user gets otherwise than the table says, a line for each row; by the password, if by nothing else."""
    broken = []
    for row in rows:
        needs = port.needs[row]
        right = Answer("let in") if not needs or user.may(needs) else Answer("refused", user.refusal(needs))
        answer = port.ask(row, login or basic(user.name))
        if answer != right:
            broken.append(f"{row}: {answer.kind} {answer.reason}")
    return broken


def wrongly_open(port: Port, rows: Sequence[str], login: Login) -> list[str]:
    """What takes a caller who does not log in well otherwise than the table says, however it is written.

    A user whose password is wrong too often is locked out.
    """
    wrong = []
    for row in rows:
        right = ("let in",) if port.needs[row] is EVERYONE else ("unknown", "locked out")
        for spelling in port.spellings(row):
            answer = port.ask(spelling, login)
            if answer.kind not in right:
                wrong.append(f"{spelling}: {answer.kind} {answer.reason}")
    return wrong
