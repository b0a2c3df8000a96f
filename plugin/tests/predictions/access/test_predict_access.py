"""Predictions where models belong to somebody: who may predict, and how soon a change is in force."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest, Unavailable
from opensearch_ml_stream.connectors.predict.guardrails.configuration import INPUT_TRIGGERED
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin import refreshing_cache
from opensearch_ml_stream.plugin.predictions.model_cache import Deploy, ModelCache
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.predictions.prediction_setup import Clock, Setup, connector_body, prediction_setup
from tests.predictions.scripted_provider import Response, ScriptedProvider, json_response, openai_stream

ANN, BOB, CAT = Caller("ann"), Caller("bob", frozenset({"team-b"})), Caller("cat", frozenset({"team-a"}))
ADMIN = Caller("root", is_admin=True)
OF_ANN = {"owner": {"name": "ann", "backend_roles": [], "roles": [], "custom_attribute_names": []}}
PRIVATE = {"access": "private", **OF_ANN}
PUBLIC = {"access": "public", **OF_ANN}
BODY = orjson.dumps({"parameters": {"inputs": "hi"}})
NO_PRIVILEGE = r"^User doesn't have privilege to perform this operation on this model$"


class WatchedStore(SQLiteStore):
    """Notes what is read of which index; may be down."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.reads: list[Index] = []
        self.down = False

    async def get(self, index: Index, id: str) -> Document | None:
        self._reached(index)
        return await super().get(index, id)

    async def changed(self, index: Index, id: str, seq_no: int, primary_term: int) -> bool:
        self._reached(index)
        return await super().changed(index, id, seq_no, primary_term)

    def _reached(self, index: Index) -> None:
        self.reads.append(index)
        if self.down:
            raise Unavailable("down")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(refreshing_cache, "monotonic", clock)
    monkeypatch.setattr(refreshing_cache, "PATIENCE_SECONDS", 30)
    return clock


@pytest.fixture
def store() -> WatchedStore:
    return WatchedStore()


def respond(request: ProviderRequest) -> Response:
    body = orjson.loads(request.body)
    return openai_stream("hi") if body.get("stream") else json_response({"response": "accept"})


BATCH_ACTION = {
    "action_type": "batch_predict", "method": "POST", "url": "https://api.openai.com/v1/batches", "request_body": "{}",
}  # fmt: skip


@pytest.fixture
async def setup(store: WatchedStore, tmp_path: Path) -> AsyncIterator[Setup]:
    """A model in ann's private group."""
    on: dict[str, Any] = {"model_access_control_enabled": True}
    async with prediction_setup(tmp_path, ScriptedProvider(respond), store, **on) as setup:
        connector = connector_body()
        await store.create(Index.MODEL_GROUP, PRIVATE, "g")
        await setup.add_model({**connector, "actions": [*connector["actions"], BATCH_ACTION]}, model_group_id="g")
        store.reads.clear()
        yield setup


async def change_group(setup: Setup, **fields: Any) -> None:
    await setup.store.put(Index.MODEL_GROUP, "g", fields)


async def stream(setup: Setup, caller: Caller) -> None:
    async with setup.predictor.stream(caller, "m", {"inputs": "hi"}):
        pass


async def predict(setup: Setup, caller: Caller) -> Mapping[str, Any]:
    return await setup.predictor.predict(caller, "m", BODY)


async def batch_predict(setup: Setup, caller: Caller) -> Mapping[str, Any]:
    return await setup.predictor.batch_predict(caller, "m", BODY)


Predict = Callable[[Setup, Caller], Awaitable[object]]
every_prediction = pytest.mark.parametrize("call", [stream, predict, batch_predict])


@every_prediction
async def test_a_prediction_is_for_those_whom_the_models_group_lets_in(setup: Setup, call: Predict) -> None:
    for caller in (BOB, CAT):
        with pytest.raises(Forbidden, match=NO_PRIVILEGE):
            await call(setup, caller)
    assert setup.provider.calls == []
    for caller in (ANN, ADMIN, ANYONE):
        await call(setup, caller)
    for caller in (BOB, CAT):
        with pytest.raises(Forbidden, match=NO_PRIVILEGE):
            await call(setup, caller)
    assert len(setup.provider.calls) == 3


async def test_who_may_not_access_a_model_neither_deploys_it_nor_learns_about_it(setup: Setup) -> None:
    deployed: list[str] = []

    async def plan(model_id: str, document: Document) -> Deploy:
        async def deploy() -> None:
            deployed.append(model_id)

        return deploy

    models = ModelCache(setup.store, setup.cipher, setup.live, plan)
    with pytest.raises(Forbidden, match=NO_PRIVILEGE):
        await models.get(BOB, "m")
    await setup.store.create(
        Index.MODEL, {"model_group_id": "g", "connector_id": "gone", "is_enabled": False}, "broken"
    )
    with pytest.raises(Forbidden, match=NO_PRIVILEGE):
        await models.get(BOB, "broken")
    assert deployed == []
    await models.get(ANN, "m")
    assert deployed == ["m"]


async def test_a_change_of_access_is_in_force_within_a_second_and_costs_a_request_nothing(
    clock: Clock, store: WatchedStore, setup: Setup
) -> None:
    await setup.models.get(ANN, "m")
    await change_group(setup, **PUBLIC)
    clock.pass_freshness()
    await setup.models.get(BOB, "m")
    await change_group(setup, access="restricted", backend_roles=["team-a"], **OF_ANN)
    clock.pass_freshness()
    with pytest.raises(Forbidden):
        await setup.models.get(BOB, "m")
    await setup.models.get(CAT, "m")
    store.reads.clear()
    for caller in (CAT, ADMIN, ANYONE) * 5:
        await setup.models.get(caller, "m")
    assert store.reads == []
    clock.pass_freshness()
    for caller in (CAT, ADMIN, ANYONE) * 5:
        await setup.models.get(caller, "m")
    assert store.reads == [Index.MODEL, Index.MODEL_GROUP, Index.MODEL_SETTINGS]


async def test_a_model_moved_to_another_group_is_as_accessible_as_that(clock: Clock, setup: Setup) -> None:
    with pytest.raises(Forbidden):
        await setup.models.get(BOB, "m")
    await setup.store.create(Index.MODEL_GROUP, PUBLIC, "open")
    document = await setup.store.get(Index.MODEL, "m")
    assert document is not None
    await setup.store.put(Index.MODEL, "m", {**document.source, "model_group_id": "open"})
    clock.pass_freshness()
    await setup.models.get(BOB, "m")


async def test_a_deleted_group_lets_in_admins_alone(clock: Clock, setup: Setup) -> None:
    await setup.models.get(ANN, "m")
    await setup.store.delete(Index.MODEL_GROUP, "g")
    clock.pass_freshness()
    with pytest.raises(Forbidden, match=NO_PRIVILEGE):
        await setup.models.get(ANN, "m")
    await setup.models.get(ADMIN, "m")


async def test_a_model_without_a_group_or_with_one_of_nobody_is_everyones(setup: Setup) -> None:
    await setup.store.create(Index.MODEL_GROUP, {"access": "public"}, "before")
    await setup.add_model(connector_body(), "old", model_group_id="before")
    await setup.add_model(connector_body(), "alone")
    await setup.models.get(BOB, "old")
    await setup.models.get(BOB, "alone")


async def test_switched_on_the_groups_of_cached_models_are_read_at_once(
    clock: Clock, store: WatchedStore, setup: Setup
) -> None:
    on, setup.live.current = setup.live.current, Settings()
    await setup.models.get(BOB, "m")
    assert Index.MODEL_GROUP not in store.reads
    setup.live.current = on
    with pytest.raises(Forbidden, match=NO_PRIVILEGE):
        await setup.models.get(BOB, "m")
    setup.live.current = Settings()
    await setup.models.get(BOB, "m")


async def test_while_the_store_is_down_access_stays_as_it_was(clock: Clock, store: WatchedStore, setup: Setup) -> None:
    await setup.models.get(ANN, "m")
    store.down = True
    clock.pass_freshness()
    await setup.models.get(ANN, "m")
    with pytest.raises(Forbidden):
        await setup.models.get(BOB, "m")


async def test_nobody_is_let_in_unchecked_if_access_control_comes_on_while_the_store_is_down(
    clock: Clock, store: WatchedStore, setup: Setup
) -> None:
    on, setup.live.current = setup.live.current, Settings()
    await setup.models.get(BOB, "m")
    setup.live.current, store.down = on, True
    for _ in range(2):
        with pytest.raises(Unavailable):
            await setup.models.get(BOB, "m")
    store.down = False
    await setup.models.get(ANN, "m")


async def test_a_guard_model_is_asked_for_the_caller(setup: Setup) -> None:
    judge = connector_body(action={"request_body": '{"question": "${parameters.question}"}'})
    await setup.add_model(judge, "judge", model_group_id="g")
    guard = {"model_id": "judge", "response_validation_regex": '"?accept"?'}
    guardrails = {"type": "model", "input_guardrail": guard}
    await setup.add_model(connector_body(), "guarded", guardrails=guardrails)
    refusal = rf"^{INPUT_TRIGGERED}: its guard model \[judge\] cannot be called: User doesn't have privilege"
    with pytest.raises(InvalidRequest, match=refusal):
        await setup.predictor.predict(BOB, "guarded", BODY)
    with pytest.raises(InvalidRequest, match=refusal):
        async with setup.predictor.stream(BOB, "guarded", {"inputs": "hi"}):
            pass
    assert setup.provider.calls == []
    await setup.predictor.predict(ANN, "guarded", BODY)
    assert len(setup.provider.calls) == 2
