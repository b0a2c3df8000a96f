"""The cache of models over SQLite: what is read when, and what is in force while the store is away."""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, Internal, InvalidRequest, NotFound, Unavailable
from opensearch_ml_stream.plugin import refreshing_cache
from opensearch_ml_stream.plugin.predictions.compiled_model import NO_SETTINGS
from opensearch_ml_stream.plugin.predictions.model_cache import FRESH_SECONDS, Deploy, ModelCache
from opensearch_ml_stream.plugin.refreshing_cache import AHEAD
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.predictions.prediction_setup import SECRET, Clock, Setup, connector_body, prediction_setup

PATIENCE_SECONDS = 30.0  # a slow machine is not a store that is away


class WatchedStore(SQLiteStore):
    """Counts the reads of models and connectors; can be down, or hang."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.gets: list[Index] = []
        self.checks: list[Index] = []
        self.down = False
        self.down_for_reads = False
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def get(self, index: Index, id: str) -> Document | None:
        if index is not Index.CONFIG:
            self.gets.append(index)
            await self._reached()
            if self.down_for_reads:
                raise Unavailable("down")
        return await super().get(index, id)

    async def changed(self, index: Index, id: str, seq_no: int, primary_term: int) -> bool:
        self.checks.append(index)
        await self._reached()
        return await super().changed(index, id, seq_no, primary_term)

    async def _reached(self) -> None:
        await self.may_answer.wait()
        if self.down:
            raise Unavailable("down")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(refreshing_cache, "monotonic", clock)
    monkeypatch.setattr(refreshing_cache, "PATIENCE_SECONDS", PATIENCE_SECONDS)
    return clock


@pytest.fixture
def store() -> WatchedStore:
    return WatchedStore()


@pytest.fixture
async def setup(store: WatchedStore, tmp_path: Path) -> AsyncIterator[Setup]:
    async with prediction_setup(tmp_path, store=store) as setup:
        await setup.add_connector(connector_body(parameters={"version": "1"}))
        await store.create(Index.MODEL, {"name": "shared", "connector_id": "c"}, "shared")
        yield setup


async def change_connector(store: WatchedStore, **fields: Any) -> None:
    document = await SQLiteStore.get(store, Index.CONNECTOR, "c")
    assert document is not None
    await store.put(Index.CONNECTOR, "c", {**document.source, **fields})


async def until_changed(setup: Setup) -> None:
    async with asyncio.timeout(30):
        while (await setup.models.get(ANYONE, "shared")).connector.parameters != {"version": "2"}:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_a_model_is_read_once_and_then_ready(clock: Clock, store: WatchedStore, setup: Setup) -> None:
    model = await setup.models.get(ANYONE, "shared")
    assert (model.model_id, model.definition.name, model.connector.name) == ("shared", "shared", "c")
    assert dict(model.credential) == {"key": SECRET}
    assert model.pool_key == "c"
    clock.now += FRESH_SECONDS - 0.001
    assert await setup.models.get(ANYONE, "shared") is model
    assert (store.gets, store.checks) == ([Index.MODEL, Index.CONNECTOR, Index.MODEL_SETTINGS], [])


async def test_a_model_with_a_connector_of_its_own_is_one_document(
    clock: Clock, store: WatchedStore, setup: Setup
) -> None:
    await setup.add_model(connector_body(), "own")
    assert (await setup.models.get(ANYONE, "own")).pool_key == "own"
    clock.pass_freshness()
    await setup.models.get(ANYONE, "own")
    assert (store.gets, store.checks) == ([Index.MODEL, Index.MODEL_SETTINGS], [Index.MODEL, Index.MODEL_SETTINGS])


async def test_guardrails_are_compiled_before_a_model_is_ready_also_wrong_ones(setup: Setup) -> None:
    patterns = [f".*bad {number}.*" for number in range(200)]
    for regex in (patterns, [*patterns, "("]):
        await setup.add_model(connector_body(), f"{len(regex)}", guardrails={"input_guardrail": {"regex": regex}})
        model = await setup.models.get(ANYONE, f"{len(regex)}")
        assert "_guardrails" in vars(model)
    for _ in range(2):
        with pytest.raises(InvalidRequest, match=r"The regular expression \[\(\] cannot be used"):
            _ = model.guardrails


async def test_an_unchanged_model_is_checked_once_a_second_and_kept(
    clock: Clock, store: WatchedStore, setup: Setup
) -> None:
    model = await setup.models.get(ANYONE, "shared")
    for _ in range(3):
        clock.pass_freshness()
        for _ in range(5):
            assert await setup.models.get(ANYONE, "shared") is model
    assert store.checks == [Index.MODEL, Index.CONNECTOR, Index.MODEL_SETTINGS] * 3
    assert store.gets == [Index.MODEL, Index.CONNECTOR, Index.MODEL_SETTINGS]


async def test_a_change_of_the_connector_is_in_force_after_a_second(
    clock: Clock, store: WatchedStore, setup: Setup
) -> None:
    await setup.models.get(ANYONE, "shared")
    await change_connector(store, parameters={"version": "2"})
    assert (await setup.models.get(ANYONE, "shared")).connector.parameters == {"version": "1"}
    clock.pass_freshness()
    assert (await setup.models.get(ANYONE, "shared")).connector.parameters == {"version": "2"}


async def test_settings_are_in_force_a_second_after_they_were_made_changed_or_deleted(
    clock: Clock, store: WatchedStore, setup: Setup
) -> None:
    assert (await setup.models.get(ANYONE, "shared")).settings == NO_SETTINGS
    for most in (3, 4):
        await store.put(Index.MODEL_SETTINGS, "shared", {"settings": {"limits": {"max_streams": most}}})
        clock.pass_freshness()
        assert (await setup.models.get(ANYONE, "shared")).settings.limits.max_streams == most
    await store.delete(Index.MODEL_SETTINGS, "shared")
    clock.pass_freshness()
    assert (await setup.models.get(ANYONE, "shared")).settings == NO_SETTINGS


async def test_a_change_of_the_model_is_in_force_after_a_second(
    clock: Clock, store: WatchedStore, setup: Setup
) -> None:
    await setup.models.get(ANYONE, "shared")
    await store.put(Index.MODEL, "shared", {"name": "renamed", "connector_id": "c"})
    clock.pass_freshness()
    assert (await setup.models.get(ANYONE, "shared")).definition.name == "renamed"


async def test_a_deleted_model_is_not_found_after_a_second_and_ready_again_when_it_is_back(
    clock: Clock, store: WatchedStore, setup: Setup
) -> None:
    await setup.models.get(ANYONE, "shared")
    await store.delete(Index.MODEL, "shared")
    clock.pass_freshness()
    for _ in range(2):
        with pytest.raises(NotFound, match=r"^Failed to find model$"):
            await setup.models.get(ANYONE, "shared")
    await store.create(Index.MODEL, {"name": "back", "connector_id": "c"}, "shared")
    assert (await setup.models.get(ANYONE, "shared")).definition.name == "back"


async def test_while_the_store_is_down_what_was_in_force_stays_in_force_and_is_looked_at_once_a_second(
    clock: Clock, store: WatchedStore, setup: Setup
) -> None:
    model = await setup.models.get(ANYONE, "shared")
    await change_connector(store, parameters={"version": "2"})
    store.down = True
    for checks in (1, 2):
        clock.pass_freshness()
        assert await setup.models.get(ANYONE, "shared") is model
        assert await setup.models.get(ANYONE, "shared") is model
        assert store.checks.count(Index.MODEL) == checks
    store.down = False
    clock.pass_freshness()
    await setup.models.get(ANYONE, "shared")  # asks, and waits no more for a store that was down
    await until_changed(setup)


async def test_nobody_waits_for_a_store_that_hangs_to_use_a_model_that_is_known(
    clock: Clock, store: WatchedStore, setup: Setup
) -> None:
    """The question that began before the model was no longer fresh is the only one, however long it takes."""
    model = await setup.models.get(ANYONE, "shared")
    await change_connector(store, parameters={"version": "2"})
    store.may_answer.clear()
    clock.now += FRESH_SECONDS * AHEAD + 0.01
    for _ in range(3):
        assert await setup.models.get(ANYONE, "shared") is model
        clock.now += PATIENCE_SECONDS
        await asyncio.sleep(0)
    clock.now += 3600
    assert await setup.models.get(ANYONE, "shared") is model
    assert store.checks.count(Index.MODEL) == 1
    store.may_answer.set()
    await until_changed(setup)


async def test_a_store_that_goes_down_between_look_and_reload_leaves_in_force_what_was(
    clock: Clock, store: WatchedStore, setup: Setup
) -> None:
    model = await setup.models.get(ANYONE, "shared")
    await change_connector(store, parameters={"version": "2"})
    store.down_for_reads = True
    for reads in (4, 5):
        clock.pass_freshness()
        assert await setup.models.get(ANYONE, "shared") is model
        assert await setup.models.get(ANYONE, "shared") is model
        assert len(store.gets) == reads
    store.down_for_reads = False
    clock.pass_freshness()
    assert (await setup.models.get(ANYONE, "shared")).connector.parameters == {"version": "2"}


async def test_a_model_that_was_never_read_is_unavailable_while_the_store_is_down(
    clock: Clock, store: WatchedStore, setup: Setup
) -> None:
    store.down = True
    with pytest.raises(Unavailable):
        await setup.models.get(ANYONE, "shared")
    store.down = False
    await setup.models.get(ANYONE, "shared")


async def test_of_many_who_need_a_model_at_once_one_reads_it(clock: Clock, store: WatchedStore, setup: Setup) -> None:
    models = await asyncio.gather(*[setup.models.get(ANYONE, "shared") for _ in range(20)])
    assert set(models) == {models[0]}
    assert store.gets == [Index.MODEL, Index.CONNECTOR, Index.MODEL_SETTINGS]
    clock.pass_freshness()
    await asyncio.gather(*[setup.models.get(ANYONE, "shared") for _ in range(20)])
    assert store.checks == [Index.MODEL, Index.CONNECTOR, Index.MODEL_SETTINGS]


async def test_names_that_callers_make_up_are_not_remembered(clock: Clock, setup: Setup) -> None:
    for number in range(10):
        with pytest.raises(NotFound, match=r"^Failed to find model$"):
            await setup.models.get(ANYONE, f"made up {number}")
    await setup.models.get(ANYONE, "shared")
    assert list(setup.models._entries._entries) == ["shared"]


async def test_a_model_whose_connector_is_missing_is_not_ready(clock: Clock, store: WatchedStore, setup: Setup) -> None:
    await store.create(Index.MODEL, {"name": "x", "connector_id": "gone"}, "x")
    with pytest.raises(NotFound, match=r"^Failed to find connector:gone$"):
        await setup.models.get(ANYONE, "x")
    await store.create(Index.MODEL, {"name": "none at all"}, "y")
    with pytest.raises(InvalidRequest, match=r"^The model has no connector"):
        await setup.models.get(ANYONE, "y")


async def test_a_disabled_model_is_forbidden_and_allowed_again_after_a_second(
    clock: Clock, store: WatchedStore, setup: Setup
) -> None:
    await store.put(Index.MODEL, "shared", {"connector_id": "c", "is_enabled": False})
    for _ in range(2):
        with pytest.raises(Forbidden, match=r"^Model is disabled\.$"):
            await setup.models.get(ANYONE, "shared")
    assert len(store.gets) == 3
    await store.put(Index.MODEL, "shared", {"connector_id": "c"})
    clock.pass_freshness()
    assert (await setup.models.get(ANYONE, "shared")).definition.is_enabled


async def test_with_remote_inference_off_even_a_ready_model_is_refused(
    clock: Clock, store: WatchedStore, setup: Setup
) -> None:
    model = await setup.models.get(ANYONE, "shared")
    setup.live.current = Settings(remote_inference_enabled=False)
    with pytest.raises(InvalidRequest, match=r"^Remote Inference is currently disabled\."):
        await setup.models.get(ANYONE, "shared")
    setup.live.current = Settings()
    assert await setup.models.get(ANYONE, "shared") is model


async def test_a_credential_of_another_master_key_is_an_internal_error(
    clock: Clock, store: WatchedStore, setup: Setup
) -> None:
    await store.put(Index.CONFIG, "master_key", {"master_key": base64.b64encode(bytes(32)).decode()})
    setup.cipher._keys.forget(lambda *_: True)
    with pytest.raises(Internal, match="another master key"):
        await setup.models.get(ANYONE, "shared")


async def test_each_version_of_a_model_is_deployed_before_it_is_ready(
    clock: Clock, store: WatchedStore, setup: Setup
) -> None:
    deployed: list[tuple[str, int]] = []

    async def plan(model_id: str, document: Document) -> Deploy:
        if document.version == 2:
            raise InvalidRequest("Model not ready yet. Please deploy the model first.")

        async def deploy() -> None:
            deployed.append((model_id, document.version))

        return deploy

    models = ModelCache(store, setup.cipher, LiveSettings(Settings()), plan)
    await models.get(ANYONE, "shared")
    await models.get(ANYONE, "shared")
    await store.put(Index.MODEL, "shared", {"connector_id": "c"})
    clock.pass_freshness()
    for _ in range(2):
        with pytest.raises(InvalidRequest, match="not ready yet"):
            await models.get(ANYONE, "shared")
    await store.put(Index.MODEL, "shared", {"connector_id": "c"})
    await models.get(ANYONE, "shared")
    assert deployed == [("shared", 1), ("shared", 3)]
