"""Controllers in force: a model's users are limited as its controller says, whatever they call it by."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, Throttled
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin import refreshing_cache
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.predictions.prediction_setup import EMBEDDING_URL, Clock, Setup, connector_body, prediction_setup
from tests.predictions.scripted_provider import Response, ScriptedProvider, json_response, openai_stream

ANN, BOB = Caller("ann"), Caller("bob", is_admin=True)
ONE = {"limit": "1", "unit": "HOURS"}
TWO = {"limit": "2", "unit": "HOURS"}
BY_USER = "^Request is throttled at user level. If you think there's an issue, please contact your cluster admin.$"


class ReadController(SQLiteStore):
    """Notes how often a controller is read, and looked at."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.reads = 0
        self.checks = 0

    async def get(self, index: Index, id: str) -> Document | None:
        self.reads += index is Index.CONTROLLER
        return await super().get(index, id)

    async def changed(self, index: Index, id: str, seq_no: int, primary_term: int) -> bool:
        self.checks += index is Index.CONTROLLER
        return await super().changed(index, id, seq_no, primary_term)


@dataclass
class Limited:
    """A model with a controller; `call` predicts, streamed or not, or starts a batch job."""

    setup: Setup
    store: ReadController
    clock: Clock

    async def call(self, caller: Caller, way: str = "predict", model_id: str = "m") -> None:
        predictor = self.setup.predictor
        if way == "stream":
            async with predictor.stream(caller, model_id, {"inputs": "hi"}) as stream:
                while stream.outcome is None:
                    await stream.read()
            return
        call = predictor.predict if way == "predict" else predictor.batch_predict
        await call(caller, model_id, orjson.dumps({"parameters": {"inputs": "hi"}}))

    async def control(self, limits: Any) -> None:
        await self.store.put(Index.CONTROLLER, "m", {"model_id": "m", "user_rate_limiter": limits})
        self.clock.pass_freshness()

    async def change_model(self, **fields: Any) -> None:
        document = await SQLiteStore.get(self.store, Index.MODEL, "m")
        assert document is not None
        await self.store.put(Index.MODEL, "m", {**document.source, **fields})
        self.clock.pass_freshness()

    def refused(self, limit: str) -> float | None:
        return self.setup.counted("mlstream_refused_total", limit=limit, model_id="m")


def respond(request: ProviderRequest) -> Response:
    body = orjson.loads(request.body)
    if "stream" in body:
        return openai_stream("hi")
    return json_response({"id": "batch_1", "data": [{"index": 0, "embedding": [1.0]}]})


@pytest.fixture
async def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Limited]:
    clock, store = Clock(), ReadController()
    monkeypatch.setattr(refreshing_cache, "monotonic", clock)
    monkeypatch.setattr(refreshing_cache, "PATIENCE_SECONDS", 30)
    async with prediction_setup(tmp_path, ScriptedProvider(respond), store) as setup:
        action = connector_body()["actions"][0]
        actions = [action, {**action, "action_type": "batch_predict"}]
        await setup.add_model(connector_body(actions=actions), is_controller_enabled=True)
        limited = Limited(setup, store, clock)
        await limited.control({"ann": ONE, "bob": TWO})
        yield limited


@pytest.mark.parametrize("way", ["stream", "predict", "batch"])
async def test_each_named_user_is_limited_by_their_own_rate(limited: Limited, way: str) -> None:
    await limited.call(ANN, way)
    for _ in range(2):
        await limited.call(BOB, way)
    for caller, retry_after in ((ANN, "3600"), (BOB, "1800")):
        with pytest.raises(Throttled, match=BY_USER) as raised:
            await limited.call(caller, way)
        assert (raised.value.status, raised.value.retry_after) == (429, retry_after)
    assert limited.refused("user_rate") == 2
    assert len(limited.setup.provider.calls) == 3


async def test_who_is_not_named_or_has_not_logged_in_is_not_limited(limited: Limited) -> None:
    await limited.control({"ann": ONE, "": ONE, "carl": {"limit": "1"}})
    for caller in (ANYONE, BOB, Caller("carl"), Caller("dora")):
        for _ in range(3):
            await limited.call(caller)


async def test_the_ways_to_call_a_model_share_a_users_limit(limited: Limited) -> None:
    await limited.call(BOB, "stream")
    await limited.call(BOB, "predict")
    for way in ("stream", "predict", "batch"):
        with pytest.raises(Throttled):
            await limited.call(BOB, way)


async def test_every_call_of_the_provider_counts(limited: Limited) -> None:
    action = {
        "url": EMBEDDING_URL,
        "pre_process_function": "connector.pre_process.openai.embedding",
        "post_process_function": "connector.post_process.openai.embedding",
        "request_body": '{"input": ${parameters.input}}',
    }
    connector = connector_body(action=action, parameters={"input_docs_processed_step_size": "1"})
    await limited.setup.add_model(connector, "embedding", is_controller_enabled=True)
    limits = {"model_id": "embedding", "user_rate_limiter": {"bob": TWO}}
    await limited.store.put(Index.CONTROLLER, "embedding", limits)
    predict = limited.setup.predictor.predict
    await predict(BOB, "embedding", b'{"text_docs": ["a"]}', "text_embedding")
    with pytest.raises(Throttled, match=BY_USER):
        await predict(BOB, "embedding", b'{"text_docs": ["a", "b", "c"]}', "text_embedding")
    assert len(limited.setup.provider.calls) <= 2


async def test_the_models_limit_is_looked_at_first_and_neither_pays_for_the_other(limited: Limited) -> None:
    await limited.change_model(rate_limiter=TWO)
    await limited.call(ANN)
    for _ in range(3):
        with pytest.raises(Throttled, match=BY_USER):
            await limited.call(ANN)
    await limited.call(BOB)
    with pytest.raises(Throttled, match=r"^Request is throttled at model level\.$"):
        await limited.call(BOB)
    assert (limited.refused("user_rate"), limited.refused("model_rate")) == (3, 1)


async def test_the_setting_switches_them_off_and_on_at_once(limited: Limited) -> None:
    await limited.call(ANN)
    limited.setup.live.current = Settings(controller_enabled=False)
    await limited.call(ANN)
    limited.setup.live.current = Settings()
    with pytest.raises(Throttled):
        await limited.call(ANN)


async def test_a_changed_controller_is_in_force_after_a_second(limited: Limited) -> None:
    await limited.call(ANN)
    await limited.control({"bob": ONE})
    await limited.call(ANN)
    await limited.call(BOB)
    with pytest.raises(Throttled):
        await limited.call(BOB)


async def test_a_controller_that_the_model_says_is_not_enabled_limits_nobody(limited: Limited) -> None:
    await limited.call(ANN)
    await limited.change_model(is_controller_enabled=False)
    reads = limited.store.reads
    for _ in range(3):
        await limited.call(ANN)
    assert limited.store.reads == reads
    await limited.change_model(is_controller_enabled=True)
    with pytest.raises(Throttled):
        await limited.call(ANN)


async def test_a_controller_that_is_missing_is_found_when_it_is_there(limited: Limited) -> None:
    await limited.store.delete(Index.CONTROLLER, "m")
    limited.clock.pass_freshness()
    for _ in range(2):
        await limited.call(ANN)
        limited.clock.pass_freshness()
    await limited.control({"ann": ONE})
    await limited.call(ANN)
    with pytest.raises(Throttled):
        await limited.call(ANN)


async def test_a_controller_is_read_once_and_looked_at_once_a_second(limited: Limited) -> None:
    for _ in range(3):
        for _ in range(5):
            await limited.call(ANYONE)
        limited.clock.pass_freshness()
    assert (limited.store.reads, limited.store.checks) == (1, 2)


async def test_a_limit_that_cannot_be_read_refuses_its_user_alone_and_is_named(limited: Limited) -> None:
    await limited.control({"ann": {"limit": "many", "unit": "HOURS"}})
    with pytest.raises(InvalidRequest, match=r"^user_rate_limiter\.ann\.limit must be a number$"):
        await limited.call(ANN)
    await limited.call(BOB)


async def test_limits_that_cannot_be_read_at_all_refuse_everyone(limited: Limited) -> None:
    await limited.control(["ann"])
    with pytest.raises(InvalidRequest, match="user_rate_limiter of the model's controller must be an object"):
        await limited.call(BOB)
