"""When callers must log in."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest, Unauthorized, Unavailable
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.security import open_gate as module
from opensearch_ml_stream.plugin.security.open_gate import open_gate
from opensearch_ml_stream.plugin.security.own_accounts import create_key, key_id, remove_account
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.actions import PREDICT
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Gate, Scope, TenantGate
from tests.security.scripted_plugin import ScriptedPlugin, request_of

STRANGER: Scope = {"headers": []}


def with_key(value: str) -> Scope:
    return {"headers": [(b"x-api-key", value.encode())]}


class StoreThatMayBeDown(SQLiteStore):
    """A store in memory whose searches fail while it is `down`. `plugin` is the security plugin of its cluster."""

    down = False
    refusals = 0
    plugin: ScriptedPlugin | None = None

    @property
    def security(self) -> ScriptedPlugin | None:
        """Return the plugin."""
        return self.plugin

    async def search(self, index: Index, body: Any) -> dict[str, Any]:
        """Search, unless the store is down."""
        if self.down:
            self.refusals += 1
            raise Unavailable("down")
        return await super().search(index, body)


@pytest.fixture
async def store() -> AsyncIterator[StoreThatMayBeDown]:
    store = StoreThatMayBeDown(":memory:")
    yield store
    await store.close()


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WATCH_SECONDS", 0.01)


async def until_closed(gate: Gate) -> None:
    async with asyncio.timeout(10):
        while True:
            try:
                await gate.admit(STRANGER, PREDICT)
            except Unauthorized:
                return
            await asyncio.sleep(0.01)


async def test_with_none_everyone_is_let_in(store: StoreThatMayBeDown, tmp_path: Path) -> None:
    await create_key(store, "app", "ml_full_access", 0)
    async with open_gate(
        Settings(security="none", host="0.0.0.0"), store, tmp_path, lambda: 0, BackgroundTasks()
    ) as gate:
        assert await gate.admit(STRANGER, PREDICT) is ANYONE


@pytest.mark.parametrize(("security", "host"), [("own", "127.0.0.1"), ("auto", "0.0.0.0")])
async def test_where_a_login_is_needed_nobody_is_let_in_without_an_account(
    store: StoreThatMayBeDown, tmp_path: Path, security: str, host: str
) -> None:
    async with open_gate(Settings(security=security, host=host), store, tmp_path, lambda: 0, BackgroundTasks()) as gate:
        with pytest.raises(Unauthorized):
            await gate.admit(STRANGER, PREDICT)


async def test_the_first_account_closes_the_gate_and_removing_it_does_not_open_it(
    store: StoreThatMayBeDown, tmp_path: Path
) -> None:
    async with open_gate(
        Settings(security="auto", host="127.0.0.1"), store, tmp_path, lambda: 0, BackgroundTasks()
    ) as gate:
        assert await gate.admit(STRANGER, PREDICT) is ANYONE
        key = await create_key(store, "app", "ml_full_access", 0)
        await until_closed(gate)
        assert (await gate.admit(with_key(key.value), PREDICT)).name == "app"
        await remove_account(store, key_id(key.id))
        with pytest.raises(Unauthorized):
            await gate.admit(STRANGER, PREDICT)


async def test_nobody_is_let_in_while_the_store_has_not_said_whether_there_are_accounts(
    store: StoreThatMayBeDown, tmp_path: Path
) -> None:
    await create_key(store, "app", "ml_full_access", 0)
    store.down = True
    async with open_gate(
        Settings(security="auto", host="127.0.0.1"), store, tmp_path, lambda: 0, BackgroundTasks()
    ) as gate:
        with pytest.raises(Unavailable, match="down"):
            await gate.admit(STRANGER, PREDICT)
        store.down = False
        with pytest.raises(Unauthorized):
            while True:
                try:
                    await gate.admit(STRANGER, PREDICT)
                except Unavailable:
                    await asyncio.sleep(0.01)


async def test_what_was_in_force_stays_while_the_store_is_down(store: StoreThatMayBeDown, tmp_path: Path) -> None:
    async with open_gate(
        Settings(security="auto", host="127.0.0.1"), store, tmp_path, lambda: 0, BackgroundTasks()
    ) as gate:
        store.down = True
        async with asyncio.timeout(10):
            while store.refusals < 2:  # noqa: ASYNC110 - looks again and again
                await asyncio.sleep(0.001)
        assert await gate.admit(STRANGER, PREDICT) is ANYONE


def of_cluster(security: str = "auto", host: str = "127.0.0.1", **others: Any) -> Settings:
    return Settings(security=security, host=host, **others)


@pytest.mark.parametrize("settings", [of_cluster(), of_cluster(host="0.0.0.0"), of_cluster("opensearch")])
async def test_users_of_opensearch_are_let_in_and_those_of_the_sidecar_are_not(
    store: StoreThatMayBeDown, tmp_path: Path, settings: Settings
) -> None:
    store.plugin = ScriptedPlugin()
    key = await create_key(store, "app", "ml_full_access", 0)
    async with open_gate(settings, store, tmp_path, lambda: 0, BackgroundTasks()) as gate:
        assert gate.asks_for_login
        assert (await gate.admit(request_of("ann"), PREDICT)).name == "ann"
        for stranger in (STRANGER, with_key(key.value), request_of("ann", "wrong")):
            with pytest.raises(Unauthorized):
                await gate.admit(stranger, PREDICT)


async def test_nobody_is_let_in_before_the_cluster_has_said_whether_it_has_the_plugin(
    store: StoreThatMayBeDown, tmp_path: Path
) -> None:
    plugin = store.plugin = ScriptedPlugin()
    plugin.down = True
    async with open_gate(of_cluster(), store, tmp_path, lambda: 0, BackgroundTasks()) as gate:
        assert not gate.asks_for_login
        for caller in (STRANGER, request_of("ann")):
            with pytest.raises(Unavailable):
                await gate.admit(caller, PREDICT)
        plugin.down = False
        await until_closed(gate)
        assert gate.asks_for_login


async def test_without_the_plugin_the_sidecars_own_users_and_keys_decide(
    store: StoreThatMayBeDown, tmp_path: Path
) -> None:
    plugin = store.plugin = ScriptedPlugin()
    plugin.installed = False
    async with open_gate(of_cluster(), store, tmp_path, lambda: 0, BackgroundTasks()) as gate:
        assert await gate.admit(STRANGER, PREDICT) is ANYONE
        plugin.installed = True  # what the cluster has said once stays
        key = await create_key(store, "app", "ml_full_access", 0)
        await until_closed(gate)
        assert gate.asks_for_login
        assert (await gate.admit(with_key(key.value), PREDICT)).name == "app"
    plugin.installed = False
    async with open_gate(of_cluster(host="0.0.0.0"), store, tmp_path, lambda: 0, BackgroundTasks()) as gate:
        with pytest.raises(Unauthorized):
            await gate.admit(STRANGER, PREDICT)


@pytest.mark.parametrize("security", ["own", "none"])
async def test_a_cluster_is_not_asked_about_users_where_the_settings_say_otherwise(
    store: StoreThatMayBeDown, tmp_path: Path, security: str
) -> None:
    plugin = store.plugin = ScriptedPlugin()
    key = await create_key(store, "app", "ml_full_access", 0)
    async with open_gate(of_cluster(security), store, tmp_path, lambda: 0, BackgroundTasks()) as gate:
        assert (await gate.admit(with_key(key.value), PREDICT)).name in ("app", "")
    assert plugin.asked == []


async def test_an_embedded_store_has_no_users_of_opensearch(store: StoreThatMayBeDown, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="name a cluster with --store"):
        async with open_gate(of_cluster("opensearch"), store, tmp_path, lambda: 0, BackgroundTasks()):
            pass


async def test_a_proxy_and_roles_of_the_settings_reach_the_gate(store: StoreThatMayBeDown, tmp_path: Path) -> None:
    plugin = store.plugin = ScriptedPlugin()
    plugin.may_read_roles = False
    settings = of_cluster(
        role_permissions=(("own_index", (PREDICT,)),),
        proxy_auth_trusted_addresses=("10.0.0.0/8",),
        proxy_auth_roles_header="x-proxy-roles",
    )
    headers = [(b"x-proxy-user", b"bob"), (b"x-proxy-roles", b"team-b")]
    async with open_gate(settings, store, tmp_path, lambda: 0, BackgroundTasks()) as gate:
        bob = await gate.admit({"headers": headers, "client": ("10.1.2.3", 4)}, PREDICT)
        assert (bob.name, bob.backend_roles) == ("bob", frozenset({"team-b"}))
        assert not gate.asks_for_login
        with pytest.raises(Unauthorized):
            await gate.admit({"headers": headers, "client": ("127.0.0.1", 4)}, PREDICT)


def bearer(value: str) -> Scope:
    return {"path": "/_search", "headers": [(b"authorization", f"Bearer {value}".encode()), (b"x-tenant-id", b"t")]}


async def test_a_request_goes_on_to_the_cluster_for_the_role_that_says_so_and_without_the_sidecars_key(
    store: StoreThatMayBeDown, tmp_path: Path
) -> None:
    full = await create_key(store, "ops", "ml_full_access", 0)
    passing = await create_key(store, "app", "pass_through_access", 0)
    async with open_gate(Settings(security="own"), store, tmp_path, lambda: 0, BackgroundTasks()) as gate:
        for request in (bearer(passing.value), with_key(passing.value)):
            admitted = await TenantGate(gate).admit_to_cluster(request)
            assert admitted == {
                **request,
                "headers": [pair for pair in request["headers"] if pair[0] == b"x-tenant-id"],
            }
        with pytest.raises(Unauthorized):
            await gate.admit_to_cluster(STRANGER)
        with pytest.raises(Forbidden, match="opensearch_ml_stream:pass_through"):
            await gate.admit_to_cluster(bearer(full.value))
        with pytest.raises(Forbidden):
            await gate.admit(bearer(passing.value), PREDICT)


async def test_a_request_goes_on_as_it_came_where_nobody_logs_in(store: StoreThatMayBeDown, tmp_path: Path) -> None:
    request = bearer("of the cluster's own")
    for settings in (Settings(security="none"), Settings(security="auto", host="127.0.0.1")):
        async with open_gate(settings, store, tmp_path, lambda: 0, BackgroundTasks()) as gate:
            assert await gate.admit_to_cluster(request) == request


@pytest.mark.parametrize("settings", [of_cluster(), of_cluster("opensearch")])
async def test_a_request_of_a_user_of_opensearch_goes_on_as_it_came_and_unasked(
    store: StoreThatMayBeDown, tmp_path: Path, settings: Settings
) -> None:
    plugin = store.plugin = ScriptedPlugin()
    async with open_gate(settings, store, tmp_path, lambda: 0, BackgroundTasks()) as gate:
        for request in (request_of("nobody"), request_of("ann", "wrong"), STRANGER):
            assert await gate.admit_to_cluster(request) == request
    assert plugin.asked == []


async def test_no_request_goes_on_before_the_cluster_has_said_whether_it_has_the_plugin(
    store: StoreThatMayBeDown, tmp_path: Path
) -> None:
    plugin = store.plugin = ScriptedPlugin()
    plugin.down = True
    async with open_gate(of_cluster(), store, tmp_path, lambda: 0, BackgroundTasks()) as gate:
        with pytest.raises(Unavailable):
            await gate.admit_to_cluster(STRANGER)
