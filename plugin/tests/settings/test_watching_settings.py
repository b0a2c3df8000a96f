"""Settings that others change: seen by every worker that watches the store, also after an outage of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.settings.dynamic import (
    DOCUMENT_ID,
    DynamicSettings,
    watching_settings,
)
from opensearch_ml_stream.plugin.store import Document, Index, Store

TASKS = "plugins.ml_commons.max_batch_inference_tasks"
ENDPOINTS = "plugins.ml_commons.trusted_connector_endpoints_regex"


def worker(store: Store) -> DynamicSettings:
    return DynamicSettings(store, LiveSettings(Settings()), lambda: 1_700_000_000_000)


@asynccontextmanager
async def watched(store: Store, live: LiveSettings) -> AsyncIterator[None]:
    async with watching_settings(store, live, BackgroundTasks(), interval=0.01):
        yield


async def until(live: LiveSettings, **fields: object) -> None:
    async with asyncio.timeout(10):
        while any(getattr(live.current, name) != value for name, value in fields.items()):  # noqa: ASYNC110 - a poller
            await asyncio.sleep(0.005)


async def test_a_change_is_seen_by_every_worker_that_watches_the_store(store: Store) -> None:
    here, there = worker(store), worker(store)
    async with watched(store, there.live):
        await here.change({ENDPOINTS: ["^https://a/.*$"]})
        await until(there.live, trusted_connector_endpoints_regex=("^https://a/.*$",))
        await here.change({ENDPOINTS: None})
        await until(there.live, trusted_connector_endpoints_regex=Settings().trusted_connector_endpoints_regex)


class StoreWithOutage:
    """A store that can be away."""

    cluster = None

    def __init__(self, store: Store) -> None:
        self._store = store
        self.away = False
        self.reads = 0

    async def get(self, index: Index, id: str) -> Document | None:
        self.reads += 1
        if self.away:
            raise Unavailable("away")
        return await self._store.get(index, id)

    async def looked_at_again(self) -> None:
        """Waits for three reads: the second begins after what is set now, and the third after its end."""
        wanted = self.reads + 3
        async with asyncio.timeout(10):
            while self.reads < wanted:  # noqa: ASYNC110 - a poller
                await asyncio.sleep(0.005)


async def test_while_the_store_is_away_the_last_settings_stay_and_changes_come_through_after_it(store: Store) -> None:
    here, live = worker(store), LiveSettings(Settings())
    unsteady = StoreWithOutage(store)
    async with watched(unsteady, live):  # type: ignore[arg-type] # watching needs no more of a store than `get`
        await here.change({TASKS: 9})
        await until(live, max_batch_inference_tasks=9)
        unsteady.away = True
        await unsteady.looked_at_again()
        await here.change({TASKS: 10})
        assert live.current.max_batch_inference_tasks == 9
        unsteady.away = False
        await until(live, max_batch_inference_tasks=10)


async def test_settings_are_watched_while_the_block_runs(store: Store) -> None:
    here, there = worker(store), worker(store)
    await here.change({TASKS: 9})
    before = asyncio.all_tasks()
    async with watching_settings(store, there.live, BackgroundTasks()):
        await until(there.live, max_batch_inference_tasks=9)
        assert len(asyncio.all_tasks() - before) == 1
    assert asyncio.all_tasks() == before


async def test_an_outage_is_logged_once(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    unsteady = StoreWithOutage(store)
    live = LiveSettings(Settings())
    unsteady.away = True
    async with watched(unsteady, live):  # type: ignore[arg-type] # watching needs no more of a store than `get`
        await unsteady.looked_at_again()
        assert caplog.messages == ["Settings cannot be read, the last ones stay in force: away"]
        unsteady.away = False
        await unsteady.looked_at_again()
        unsteady.away = True
        await unsteady.looked_at_again()
    assert caplog.messages == ["Settings cannot be read, the last ones stay in force: away"] * 2


@pytest.mark.parametrize("spoilt", ["{", "[]"])
async def test_a_document_spoilt_by_hand_is_reported_and_the_last_settings_stay(store: Store, spoilt: str) -> None:
    live = LiveSettings(Settings())
    await store.create(Index.CONFIG, {"ml_configuration": {"settings": spoilt}}, DOCUMENT_ID)
    watched_store = StoreWithOutage(store)
    async with watched(watched_store, live):  # type: ignore[arg-type] # watching needs no more of a store than `get`
        await watched_store.looked_at_again()
        await store.delete(Index.CONFIG, DOCUMENT_ID)
        await worker(store).change({TASKS: 9})
        await until(live, max_batch_inference_tasks=9)
