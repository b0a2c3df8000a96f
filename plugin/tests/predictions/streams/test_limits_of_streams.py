"""Caps and times of a model's limits through the Predictor: what counts for them, and what they refuse."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, Throttled, UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.upstream import ReadTimedOut
from opensearch_ml_stream.rest_handlers.callers import Caller
from tests.predictions.prediction_setup import Setup, connector_body, prediction_setup
from tests.predictions.scripted_provider import Response, ScriptedProvider, json_response, openai_stream

QUESTION = {"inputs": "hi"}
ME, YOU = Caller("me"), Caller("you")
BODY = orjson.dumps({"parameters": QUESTION})


def respond(request: ProviderRequest) -> Response:
    body = orjson.loads(request.body)
    if "question" in body:
        return json_response({"response": "accept"})
    return openai_stream("a") if body.get("stream") else json_response({"said": "a"})


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[Setup]:
    async with prediction_setup(tmp_path, ScriptedProvider(respond), stream_queue_seconds=0) as setup:
        yield setup


class HeldResponse(Response):
    """A response whose body comes once the gate is open."""

    def __init__(self, parts: list[bytes]) -> None:
        super().__init__(parts)
        self.is_read = asyncio.Event()
        self.gate = asyncio.Event()
        self.failed = asyncio.Event()

    async def read(self) -> bytes:
        self.is_read.set()
        await self.gate.wait()
        return await super().read()

    def fail(self, error: UpstreamError) -> None:
        self.failed.set()


async def add_model(
    setup: Setup, model_id: str = "m", connector: dict[str, Any] | None = None, **limits: float
) -> None:
    await setup.add_model(connector or connector_body(), model_id)
    await setup.store.put(Index.MODEL_SETTINGS, model_id, {"settings": {"limits": limits}})


async def read(setup: Setup, caller: Caller = ME, model_id: str = "m") -> None:
    async with setup.predictor.stream(caller, model_id, QUESTION) as stream:
        while stream.outcome is None:
            await stream.read()


async def test_a_stream_holds_its_place_until_it_is_left(setup: Setup) -> None:
    await add_model(setup, max_streams=1)
    async with setup.predictor.stream(ME, "m", QUESTION):
        with pytest.raises(Throttled):
            await read(setup, YOU)
        with pytest.raises(Throttled):
            await setup.predictor.predict(YOU, "m", BODY)
        assert len(setup.provider.calls) == 1
    await read(setup, YOU)
    await setup.predictor.predict(YOU, "m", BODY)
    assert setup.counted("mlstream_refused_total", limit="model_streams", model_id="m") == 2


async def test_a_whole_prediction_holds_a_place_too(setup: Setup) -> None:
    await add_model(setup, max_streams_per_user=1)
    held = HeldResponse([b"{}"])
    setup.provider.script = lambda request: held
    first = asyncio.create_task(setup.predictor.predict(ME, "m", BODY))
    await held.is_read.wait()
    setup.provider.script = respond
    with pytest.raises(Throttled):
        await read(setup)
    await read(setup, YOU)
    held.gate.set()
    await first
    await read(setup)


@pytest.mark.parametrize("whole", [True, False])
async def test_what_a_guard_model_is_asked_is_part_of_the_prediction(setup: Setup, whole: bool) -> None:
    judge = connector_body(action={"request_body": '{"question": "${parameters.question}"}'})
    await add_model(setup, "judge", judge, max_streams=1, max_streams_per_user=1)
    guard = {"type": "model", "input_guardrail": {"model_id": "judge", "response_validation_regex": '"?accept"?'}}
    await setup.add_model(connector_body(), "m", guardrails=guard)
    setup.live.current = replace(setup.live.current, max_streams_per_server=1)
    await (setup.predictor.predict(ME, "m", BODY) if whole else read(setup))
    assert len(setup.provider.calls) == 2


async def test_a_wrong_request_for_a_stream_is_refused_before_it_needs_a_place(setup: Setup) -> None:
    await add_model(setup, max_streams=1)
    async with setup.predictor.stream(ME, "m", QUESTION):
        with pytest.raises(InvalidRequest):
            async with setup.predictor.stream(YOU, "m", {}):
                pass


async def test_a_place_is_released_whatever_becomes_of_the_call(setup: Setup) -> None:
    await add_model(setup, max_streams=1)
    for refusal in (Response([b"no"], 500), Response([b"no"], 401)):
        setup.provider.script = partial(lambda refusal, request: refusal, refusal)
        with pytest.raises(UpstreamError, match="no"):
            await read(setup)
    setup.provider.script = respond
    await read(setup)


async def test_a_provider_that_does_not_begin_in_time_is_let_go(setup: Setup) -> None:
    await add_model(setup, first_byte_timeout_seconds=0.01)
    setup.provider.script = lambda request: HeldResponse([b"{}"])
    with pytest.raises(ReadTimedOut, match="first_byte_timeout_seconds"):
        await read(setup)
    with pytest.raises(ReadTimedOut, match="first_byte_timeout_seconds"):
        await setup.predictor.predict(ME, "m", BODY)
    assert [call.is_open for call in setup.provider.calls] == [False, False]
    assert setup.counted("mlstream_provider_errors_total", model_id="m", provider_status="none") == 2


async def test_a_provider_that_does_not_end_in_time_is_let_go(setup: Setup) -> None:
    await add_model(setup, total_timeout_seconds=0.01)
    held = HeldResponse([b"{}"])
    setup.provider.script = lambda request: held
    async with setup.predictor.stream(ME, "m", QUESTION):
        await held.failed.wait()
