"""Users x routes, where users and keys of the sidecar's own decide: no route without a right, no right too many."""

import asyncio
from collections.abc import Iterator

import pytest
from integration_tests.server.security.rights import (
    ALL_OF_ML,
    BASE,
    EVERYONE,
    MONITOR,
    NEEDS,
    PREDICT,
    READ_OF_ML,
    SETTINGS,
    User,
    broken_rights,
    open_routes,
    routes_of,
)
from integration_tests.support.secured_cluster import PASSWORD
from integration_tests.support.sidecars import Sidecar, running_sidecar

from opensearch_ml_stream.plugin.security.own_accounts import add_user, user_id
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.open_store import open_store

USERS = [
    User("full", frozenset(ALL_OF_ML | MONITOR | SETTINGS)),
    User("reader", frozenset(READ_OF_ML | MONITOR)),
    User("predictor", frozenset(PREDICT)),
    User("nobody", frozenset()),
]
ROLES = {"full": "ml_full_access", "reader": "ml_read_access", "predictor": "ml_predict_access"}


async def add_users(store_url: str) -> None:
    """Adds the users of the table; the role of `nobody` is none of a sidecar's."""
    async with open_store(store_url) as store:
        for user in USERS:
            await add_user(store, user.name, PASSWORD, ROLES.get(user.name, "ml_read_access"), now=0)
        await add_user(store, "locked", PASSWORD, "ml_full_access", now=0)  # out by the wrong passwords of a test
        document = await store.get(Index.ACCOUNT, user_id("nobody"))
        assert document is not None
        await store.put(Index.ACCOUNT, user_id("nobody"), {**document.source, "roles": ["of-another-version"]})


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    folder = tmp_path_factory.mktemp("rights")
    store_url = f"sqlite:///{folder}/store.db"
    asyncio.run(add_users(store_url))
    with running_sidecar(folder, store_url, arguments=("--workers", "2")) as running:
        yield running


@pytest.fixture(scope="module")
def routes(sidecar: Sidecar) -> list[str]:
    return routes_of(sidecar.client.get(f"{BASE}/openapi.json", auth=("nobody", PASSWORD)).json())


def test_every_route_has_a_row(routes: list[str]) -> None:
    assert set(routes) == NEEDS.keys()


@pytest.mark.parametrize("user", USERS, ids=lambda user: user.name)
def test_a_user_may_do_what_the_table_says(sidecar: Sidecar, routes: list[str], user: User) -> None:
    assert broken_rights(sidecar.client, user, routes) == []


@pytest.mark.parametrize("auth", [None, ("locked", "wrong"), ("unknown", PASSWORD)], ids=["none", "wrong", "unknown"])
def test_who_does_not_log_in_well_gets_in_nowhere_but_where_everyone_does(
    sidecar: Sidecar, routes: list[str], auth: tuple[str, str] | None
) -> None:
    assert open_routes(sidecar.client, auth, routes) == {route for route in routes if NEEDS[route] is EVERYONE}
