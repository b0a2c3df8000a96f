"""What the Predictor counts of its predictions, for `/stats` and `/profile`."""

from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, NotFound, Throttled, UpstreamError
from opensearch_ml_stream.plugin.monitoring.statistics import ActionCount
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.predictions.prediction_setup import Setup, connector_body, prediction_setup
from tests.predictions.scripted_provider import (
    Response,
    ScriptedProvider,
    json_response,
    openai_event,
    openai_stream,
)

LIMITER = {"limit": "1", "unit": "DAYS"}
WHOLE = orjson.dumps({"parameters": {"inputs": "hi"}})


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[Setup]:
    async with prediction_setup(tmp_path, ScriptedProvider(lambda request: openai_stream("a"))) as setup:
        yield setup


async def stream(setup: Setup, model_id: str = "m") -> None:
    async with setup.predictor.stream(ANYONE, model_id, {"inputs": "hi"}) as opened:
        assert [task.model_id for task in setup.statistics.running().values()] == [model_id]
        while opened.outcome is None:
            await opened.read()
    assert setup.statistics.running() == {}


def counted(setup: Setup, model_id: str = "m") -> tuple[ActionCount, int, int, int]:
    """Requests and failures, throttled requests, and how many durations there are of requests and inferences."""
    figures = setup.statistics.model(model_id)
    assert figures is not None
    durations = len(figures.request_durations), len(figures.inference_durations)
    return figures.actions["predict"], figures.throttled, *durations


async def test_streams_are_counted_by_their_outcome(setup: Setup) -> None:
    await setup.add_model(connector_body())
    await stream(setup)
    assert counted(setup) == (ActionCount(1, 0), 0, 1, 1)
    setup.provider.script = lambda request: Response([openai_event("a"), UpstreamError("broken off")])
    await stream(setup)
    assert counted(setup) == (ActionCount(2, 1), 0, 2, 1)
    setup.provider.script = lambda request: Response([b"no"], status=429)
    with pytest.raises(UpstreamError):
        await stream(setup)
    assert counted(setup) == (ActionCount(3, 2), 0, 3, 1)


async def test_a_client_that_disconnects_makes_no_failure_and_no_inference(setup: Setup) -> None:
    await setup.add_model(connector_body())
    async with setup.predictor.stream(ANYONE, "m", {"inputs": "hi"}) as opened:
        await opened.read()
    assert counted(setup) == (ActionCount(1, 0), 0, 1, 0)


async def test_whole_predictions_are_counted_by_their_outcome(setup: Setup) -> None:
    setup.provider.script = lambda request: json_response({"a": 1})
    await setup.add_model(connector_body())
    await setup.predictor.predict(ANYONE, "m", WHOLE)
    with pytest.raises(InvalidRequest):
        await setup.predictor.predict(ANYONE, "m", b'{"parameters": {}}')
    assert counted(setup) == (ActionCount(2, 1), 0, 2, 1)
    assert setup.statistics.counts() == {"predict": ActionCount(2, 1)}


@pytest.mark.parametrize("streamed", [True, False])
async def test_hits_of_the_rate_limit_are_counted_apart(setup: Setup, streamed: bool) -> None:
    await setup.add_model(connector_body(), rate_limiter=LIMITER)
    statuses = []
    for _ in range(3):
        try:
            await (stream(setup) if streamed else setup.predictor.predict(ANYONE, "m", WHOLE))
        except MLStreamError as error:
            statuses.append(type(error))
    assert statuses[-2:] == [Throttled, Throttled]
    actions, throttled, *_ = counted(setup)
    assert (actions.requests, throttled) == (3, 2)


async def test_ids_of_no_model_are_counted_without_their_names(setup: Setup) -> None:
    for call in (
        stream(setup, "x"),
        setup.predictor.predict(ANYONE, "x", WHOLE),
        setup.predictor.batch_predict(ANYONE, "x", WHOLE),
    ):
        with pytest.raises(NotFound):
            await call
    assert setup.statistics.counts() == {"predict": ActionCount(2, 2), "batch_predict": ActionCount(1, 1)}
    assert setup.statistics.models() == {}


async def test_a_batch_request_that_no_model_is_looked_for_leaves_nothing_under_its_id(setup: Setup) -> None:
    with pytest.raises(InvalidRequest, match="_batch_predict takes parameters"):
        await setup.predictor.batch_predict(ANYONE, "made up", b'{"text_docs": ["a"]}')
    assert setup.statistics.models() == {}


async def test_a_batch_job_is_an_action_of_its_own(setup: Setup) -> None:
    await setup.add_model(connector_body())
    with pytest.raises(InvalidRequest):
        await setup.predictor.batch_predict(ANYONE, "m", WHOLE)
    figures = setup.statistics.model("m")
    assert figures is not None and figures.actions == {"batch_predict": ActionCount(1, 1)}
