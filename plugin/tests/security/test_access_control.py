"""Who may see and use a connector or model group, and what is stored of that when one is made."""

import re
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.security.access_control import (
    CONNECTOR_WORDING,
    GROUP_WORDING,
    AccessControl,
    AskedAccess,
    access_fields,
    may_access,
    owner_of,
    visible_to,
)
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller

ANN = Caller("ann", frozenset({"team-a", "all-teams"}))
BOB = Caller("bob", frozenset({"team-b"}))
EVE = Caller("eve")
ADMIN = Caller("admin", frozenset({"admin"}), is_admin=True)
CALLERS = (ANN, BOB, EVE, ADMIN)
ON = AccessControl(lambda: True, CONNECTOR_WORDING)
OFF = AccessControl(lambda: False, CONNECTOR_WORDING)

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
    "unknown mode with roles": ({"access": "secret", "backend_roles": ["team-a"], "owner": owner_of(BOB)}, {"admin"}),
    "owner without a name": ({"access": "private", "owner": {}}, {"admin"}),
    "no mode": ({"owner": owner_of(BOB)}, {"admin"}),
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_access_follows_mode_owner_and_backend_roles(kind: str) -> None:
    document, names = DOCUMENTS[kind]
    assert {caller.name for caller in CALLERS if may_access(caller, document)} == names


async def test_a_search_finds_what_may_be_accessed() -> None:
    store = SQLiteStore(":memory:")
    try:
        for kind, (document, _) in DOCUMENTS.items():
            await store.create(Index.CONNECTOR, document, kind)
        for caller in CALLERS:
            response = await store.search(Index.CONNECTOR, {"query": visible_to(caller)})
            found = {hit["_id"] for hit in response["hits"]["hits"]}
            assert found == {kind for kind, (_, names) in DOCUMENTS.items() if caller.name in names}
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("asked", "fields"),
    [
        (AskedAccess(), {"access": "private"}),
        (AskedAccess("public"), {"access": "public"}),
        (AskedAccess(roles=()), {"access": "private"}),
        (AskedAccess(roles=("team-a",)), {"access": "restricted", "backend_roles": ["team-a"]}),
        (AskedAccess(add_all=True), {"access": "restricted", "backend_roles": ["all-teams", "team-a"]}),
        (AskedAccess("private", add_all=False), {"access": "private"}),
    ],
)
def test_the_mode_follows_from_the_roles_where_none_is_given(asked: AskedAccess, fields: dict[str, Any]) -> None:
    assert access_fields(ANN, asked, GROUP_WORDING) == fields | {"owner": owner_of(ANN)}


@pytest.mark.parametrize(
    ("caller", "asked", "reason"),
    [
        (ANN, AskedAccess("public", ("team-a",)), CONNECTOR_WORDING.only_restricted),
        (ANN, AskedAccess("private", add_all=True), CONNECTOR_WORDING.only_restricted),
        (ANN, AskedAccess(roles=("team-a",), add_all=True), CONNECTOR_WORDING.roles_and_add_all),
        (ANN, AskedAccess("restricted"), CONNECTOR_WORDING.no_roles),
        (ANN, AskedAccess(roles=("team-b",)), CONNECTOR_WORDING.foreign_role),
        (EVE, AskedAccess(roles=("team-b",)), CONNECTOR_WORDING.caller_without_roles),
        (ADMIN, AskedAccess(add_all=True), CONNECTOR_WORDING.add_all_by_admin),
        (ADMIN, AskedAccess("restricted"), CONNECTOR_WORDING.no_roles),
    ],
)
def test_fields_that_contradict_each_other_are_refused(caller: Caller, asked: AskedAccess, reason: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        ON.new_fields(caller, asked)
    assert refused.value.reason == reason


def test_an_admin_may_restrict_to_roles_of_others() -> None:
    admin = Caller("root", is_admin=True)
    assert access_fields(admin, AskedAccess(roles=("team-b",)), GROUP_WORDING)["backend_roles"] == ["team-b"]


@pytest.mark.parametrize(("control", "caller"), [(OFF, ANN), (OFF, ADMIN), (OFF, ANYONE), (ON, ANYONE)])
def test_where_it_is_off_or_nobody_logs_in_nothing_is_owned_restricted_or_asked(
    control: AccessControl, caller: Caller
) -> None:
    assert control.new_fields(caller, AskedAccess(roles=())) == {}
    assert control.changed_fields(caller, {}, AskedAccess()) == {}
    assert control.allows(caller, {"access": "private", "owner": owner_of(BOB)})
    for asked in (AskedAccess("public"), AskedAccess(roles=("a",)), AskedAccess(add_all=False)):
        with pytest.raises(InvalidRequest) as refused:
            control.new_fields(caller, asked)
        with pytest.raises(InvalidRequest, match=re.escape(CONNECTOR_WORDING.switched_off)):
            control.changed_fields(caller, {}, asked)
        assert refused.value.reason == CONNECTOR_WORDING.switched_off


def test_what_is_missing_is_accessible_to_admins_alone() -> None:
    assert [caller.name for caller in CALLERS if ON.allows(caller, None)] == ["admin"]


OWNED = {"access": "restricted", "backend_roles": ["team-a"], "owner": owner_of(ANN)}
OWN = {"owner": owner_of(ANN)}


@pytest.mark.parametrize(
    ("asked", "changed"),
    [
        (AskedAccess(), {}),
        (AskedAccess("public"), {"access": "public", "backend_roles": [], **OWN}),
        (AskedAccess("private"), {"access": "private", "backend_roles": [], **OWN}),
        (AskedAccess(roles=("all-teams",)), {"access": "restricted", "backend_roles": ["all-teams"], **OWN}),
        (AskedAccess(add_all=True), {"access": "restricted", "backend_roles": ["all-teams", "team-a"], **OWN}),
    ],
)
def test_the_owner_changes_who_may_access(asked: AskedAccess, changed: dict[str, Any]) -> None:
    assert ON.changed_fields(ANN, OWNED, asked) == changed
    as_admin = ON.changed_fields(ADMIN, OWNED, asked) if not asked.add_all else changed
    assert as_admin == changed, "and the owner stays the owner"


@pytest.mark.parametrize("document", [OWNED, {"access": "public", "owner": owner_of(ANN)}, {"access": "public"}])
def test_nobody_else_changes_who_may_access(document: dict[str, Any]) -> None:
    for asked in (AskedAccess("public"), AskedAccess(roles=()), AskedAccess(add_all=False)):
        with pytest.raises(InvalidRequest, match=r"^Only owner or admin can update access control data\.$"):
            ON.changed_fields(BOB, document, asked)


def test_a_restricted_document_does_not_lose_its_last_role() -> None:
    with pytest.raises(InvalidRequest, match="at least one backend role or make the connector public/private"):
        ON.changed_fields(ANN, OWNED, AskedAccess(roles=()))


def test_who_is_first_to_restrict_what_nobody_owns_becomes_its_owner() -> None:
    changed = ON.changed_fields(ADMIN, {"access": "public"}, AskedAccess("private"))
    assert changed == {"access": "private", "backend_roles": [], "owner": owner_of(ADMIN)}
    assert not may_access(BOB, changed)
