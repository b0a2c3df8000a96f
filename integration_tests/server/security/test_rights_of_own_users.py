"""Users x routes, where users and keys of the sidecar's own decide: no route without a right, no right too many."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest
from integration_tests.server.grpc_port.grpc_clients import GRPC, grpc_address
from integration_tests.server.security.conftest import WORKERS
from integration_tests.server.security.grpc_rights import GrpcPort
from integration_tests.server.security.http_rights import HttpPort
from integration_tests.server.security.needs import ALL_OF_ML, MONITOR, PREDICT, READ_OF_ML, SETTINGS
from integration_tests.server.security.rights import (
    NOBODY,
    Login,
    Port,
    User,
    api_key,
    basic,
    bearer,
    broken_rights,
    wrongly_open,
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
    with running_sidecar(folder, store_url, arguments=(*WORKERS, *GRPC)) as running:
        yield Guarded(running, keys)


@pytest.fixture(scope="module", params=["http", "grpc"])
def port(request: pytest.FixtureRequest, guarded: Guarded) -> Port:
    return HttpPort(guarded.sidecar.client) if request.param == "http" else GrpcPort(grpc_address(guarded.sidecar))


@pytest.fixture(scope="module")
def rows(port: Port) -> Sequence[str]:
    return port.rows(basic("nobody"))


def test_every_route_and_every_method_has_a_row(port: Port, rows: Sequence[str]) -> None:
    assert set(rows) == port.needs.keys()


@pytest.mark.parametrize("user", USERS, ids=lambda user: user.name)
def test_a_user_may_do_what_the_table_says(port: Port, rows: Sequence[str], user: User) -> None:
    assert broken_rights(port, rows, user) == []


@pytest.mark.parametrize(("name", "login"), [("full", bearer), ("reader", api_key), ("predictor", bearer)])
def test_a_key_may_do_what_the_table_says(
    guarded: Guarded, port: Port, rows: Sequence[str], name: str, login: Callable[[str], Login]
) -> None:
    (user,) = (user for user in USERS if user.name == name)
    assert broken_rights(port, rows, user, login(guarded.keys[name])) == []


@pytest.mark.parametrize(
    "login",
    [NOBODY, basic("locked", "wrong"), api_key("mls_x_y")],
    ids=["none", "wrong", "key"],
)
def test_who_does_not_log_in_well_gets_in_nowhere_but_where_everyone_does(
    port: Port, rows: Sequence[str], login: Login
) -> None:
    """Other logins that are wrong: `plugin/tests/security/test_own_gate.py`."""
    assert wrongly_open(port, rows, login) == []
