"""When callers must log in."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Unauthorized, Unavailable
from opensearch_ml_stream.plugin.security import open_gate as module
from opensearch_ml_stream.plugin.security.open_gate import open_gate
from opensearch_ml_stream.plugin.security.own_accounts import create_key, key_id, remove_account
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.actions import PREDICT
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Gate, Scope

STRANGER: Scope = {"headers": []}


def with_key(value: str) -> Scope:
    return {"headers": [(b"x-api-key", value.encode())]}


class StoreThatMayBeDown(SQLiteStore):
    """A store in memory whose searches fail while it is `down`."""

    down = False

    async def search(self, index: Index, body: Any) -> dict[str, Any]:
        """Search, unless the store is down."""
        if self.down:
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
    async with open_gate(Settings(security="none", host="0.0.0.0"), store, tmp_path, lambda: 0) as gate:
        assert await gate.admit(STRANGER, PREDICT) is ANYONE


@pytest.mark.parametrize(("security", "host"), [("own", "127.0.0.1"), ("auto", "0.0.0.0")])
async def test_where_a_login_is_needed_nobody_is_let_in_without_an_account(
    store: StoreThatMayBeDown, tmp_path: Path, security: str, host: str
) -> None:
    async with open_gate(Settings(security=security, host=host), store, tmp_path, lambda: 0) as gate:
        with pytest.raises(Unauthorized):
            await gate.admit(STRANGER, PREDICT)


async def test_the_first_account_closes_the_gate_and_removing_it_does_not_open_it(
    store: StoreThatMayBeDown, tmp_path: Path
) -> None:
    async with open_gate(Settings(security="auto", host="127.0.0.1"), store, tmp_path, lambda: 0) as gate:
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
    async with open_gate(Settings(security="auto", host="127.0.0.1"), store, tmp_path, lambda: 0) as gate:
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
    async with open_gate(Settings(security="auto", host="127.0.0.1"), store, tmp_path, lambda: 0) as gate:
        store.down = True
        await asyncio.sleep(0.05)
        assert await gate.admit(STRANGER, PREDICT) is ANYONE
