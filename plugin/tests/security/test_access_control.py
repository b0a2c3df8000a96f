"""Who may see and use a connector or model group, and what is stored of that when one is made."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.security.access_control import (
    CONNECTOR_WORDING,
    GROUP_WORDING,
    access_fields,
    may_access,
    owner_of,
)
from opensearch_ml_stream.rest_handlers.callers import Caller

ANN = Caller("ann", frozenset({"team-a", "all-teams"}))
BOB = Caller("bob", frozenset({"team-b"}))
EVE = Caller("eve")
ADMIN = Caller("admin", frozenset({"admin"}), is_admin=True)
CALLERS = (ANN, BOB, EVE, ADMIN)

DOCUMENTS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "made where nobody logs in": ({"name": "d"}, {"ann", "bob", "eve", "admin"}),
    "public": ({"access": "public", "owner": owner_of(BOB)}, {"ann", "bob", "eve", "admin"}),
    "private": ({"access": "private", "owner": owner_of(BOB)}, {"bob", "admin"}),
    "restricted": (
        {"access": "restricted", "backend_roles": ["team-a", "x"], "owner": owner_of(BOB)},
        {"ann", "admin"},
    ),
    "restricted to nobody": ({"access": "restricted", "owner": owner_of(BOB)}, {"admin"}),
    "unknown mode": ({"access": "secret", "owner": owner_of(BOB)}, {"admin"}),
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_access_follows_mode_owner_and_backend_roles(kind: str) -> None:
    document, names = DOCUMENTS[kind]
    assert {caller.name for caller in CALLERS if may_access(caller, document)} == names


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"access": "private"}),
        ({"access_mode": "public"}, {"access": "public"}),
        ({"backend_roles": []}, {"access": "private"}),
        ({"backend_roles": ["team-a"]}, {"access": "restricted", "backend_roles": ["team-a"]}),
        ({"add_all_backend_roles": True}, {"access": "restricted", "backend_roles": ["all-teams", "team-a"]}),
        ({"add_all_backend_roles": False, "access_mode": "private"}, {"access": "private"}),
    ],
)
def test_the_mode_follows_from_the_roles_where_none_is_given(body: dict[str, Any], fields: dict[str, Any]) -> None:
    assert access_fields(ANN, body, GROUP_WORDING) == fields | {"owner": owner_of(ANN)}


@pytest.mark.parametrize(
    ("caller", "body", "reason"),
    [
        (ANN, {"access_mode": "public", "backend_roles": ["team-a"]}, CONNECTOR_WORDING.only_restricted),
        (ANN, {"access_mode": "private", "add_all_backend_roles": True}, CONNECTOR_WORDING.only_restricted),
        (ANN, {"backend_roles": ["team-a"], "add_all_backend_roles": True}, CONNECTOR_WORDING.roles_and_add_all),
        (ANN, {"access_mode": "restricted"}, CONNECTOR_WORDING.no_roles),
        (ANN, {"backend_roles": ["team-b"]}, CONNECTOR_WORDING.foreign_role),
        (EVE, {"backend_roles": ["team-b"]}, CONNECTOR_WORDING.caller_without_roles),
        (ADMIN, {"add_all_backend_roles": True}, CONNECTOR_WORDING.add_all_by_admin),
    ],
)
def test_fields_that_contradict_each_other_are_refused(caller: Caller, body: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        access_fields(caller, body, CONNECTOR_WORDING)
    assert refused.value.reason == reason


def test_an_admin_may_restrict_to_roles_of_others() -> None:
    assert access_fields(ADMIN, {"backend_roles": ["team-b"]}, GROUP_WORDING)["backend_roles"] == ["team-b"]
