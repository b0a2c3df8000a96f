"""Users x routes, where users and keys of the sidecar's own decide: no route without a right, no right too many."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from integration_tests.server.security.conftest import WORKERS
from integration_tests.server.security.rights import (
    ALL_OF_ML,
    BASE,
    EVERYONE,
    MONITOR,
    NEEDS,
    PREDICT,
    READ_OF_ML,
    SETTINGS,
    Login,
    User,
    bearer,
    broken_rights,
    open_routes,
    routes_of,
)
from integration_tests.support.secured.secured_cluster import PASSWORD
from integration_tests.support.sidecars import Sidecar, running_sidecar

from opensearch_ml_stream.plugin.security.own_accounts import add_user, create_key, user_id
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.open_store import open_store

USERS = [
    User("full", frozenset(ALL_OF_ML | MONITOR | SETTINGS)),
    User("reader", frozenset(READ_OF_ML | MONITOR)),
    User("predictor", frozenset(PREDICT)),
    User("nobody", frozenset()),
]
ROLES = {"full": "ml_full_access", "reader": "ml_read_access", "predictor": "ml_predict_access"}


@dataclass(frozen=True, slots=True)
class Guarded:
    """A sidecar with a user and a key for each line of the table; the keys are by the user's name."""

    sidecar: Sidecar
    keys: dict[str, str]


async def add_accounts(store_url: str) -> dict[str, str]:
    """Adds the users and keys of the table; the role of the user `nobody` is none of a sidecar's. Returns the keys."""
    async with open_store(store_url) as store:
        for user in USERS:
            await add_user(store, user.name, PASSWORD, ROLES.get(user.name, "ml_read_access"), now=0)
        await add_user(store, "locked", PASSWORD, "ml_full_access", now=0)  # out by the wrong passwords of a test
        document = await store.get(Index.ACCOUNT, user_id("nobody"))
        assert document is not None
        await store.put(Index.ACCOUNT, user_id("nobody"), {**document.source, "roles": ["of-another-version"]})
        return {name: (await create_key(store, name, role, now=0)).value for name, role in ROLES.items()}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("rights")
    store_url = f"sqlite:///{folder}/store.db"
    keys = asyncio.run(add_accounts(store_url))
    with running_sidecar(folder, store_url, arguments=WORKERS) as running:
        yield Guarded(running, keys)


@pytest.fixture(scope="module")
def routes(guarded: Guarded) -> list[str]:
    return routes_of(guarded.sidecar.client.get(f"{BASE}/openapi.json", auth=("nobody", PASSWORD)).json())


def test_every_route_has_a_row(routes: list[str]) -> None:
    assert set(routes) == NEEDS.keys()


@pytest.mark.parametrize("user", USERS, ids=lambda user: user.name)
def test_a_user_may_do_what_the_table_says(guarded: Guarded, routes: list[str], user: User) -> None:
    assert broken_rights(guarded.sidecar.client, user, routes) == []


@pytest.mark.parametrize("user", [user for user in USERS if user.name in ROLES], ids=lambda user: user.name)
def test_a_key_may_do_what_the_table_says(guarded: Guarded, routes: list[str], user: User) -> None:
    assert broken_rights(guarded.sidecar.client, user, routes, bearer(guarded.keys[user.name])) == []


@pytest.mark.parametrize(
    "login",
    [None, ("locked", "wrong"), ("unknown", PASSWORD), bearer("mls_x_y")],
    ids=["none", "wrong", "unknown", "key"],
)
def test_who_does_not_log_in_well_gets_in_nowhere_but_where_everyone_does(
    guarded: Guarded, routes: list[str], login: Login
) -> None:
    assert open_routes(guarded.sidecar.client, login, routes) == {route for route in routes if NEEDS[route] is EVERYONE}
