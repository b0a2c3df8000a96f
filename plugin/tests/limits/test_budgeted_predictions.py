"""Budgets of models through the Predictor: which calls are counted, and by what."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.errors import Throttled, UpstreamError
from opensearch_ml_stream.connectors.token_spending import estimate_request_tokens
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.predictions.prediction_setup import EMBEDDING_URL, Setup, connector_body, prediction_setup
from tests.predictions.scripted_provider import SSE, Response, ScriptedProvider, json_response, openai_event

WINDOW = "300d"  # which ends in no test
WITH_USAGE = (
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}\n\ndata: [DONE]\n\n'
)
WITHOUT_USAGE = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[Setup]:
    async with prediction_setup(tmp_path, ScriptedProvider()) as setup:
        yield setup


async def add_model(setup: Setup, id: str = "m", /, connector: dict[str, Any] | None = None, **fields: Any) -> None:
    """A model of which 100 tokens are allowed, in all and to each user."""
    budgets = [{"tokens": 100, "window": WINDOW, "per": per} for per in ("model", "user")]
    await setup.store.create(Index.MODEL_SETTINGS, {"settings": {"budgets": budgets}}, id)
    await setup.add_model(connector or connector_body(), id, **fields)


def stream_of(*parts: bytes | UpstreamError) -> Response:
    return Response(parts, headers=SSE)


async def streamed(setup: Setup, caller: Caller = ANYONE) -> dict[str, Any]:
    """What the terminal object of a good stream says beside its ending."""
    async with setup.predictor.stream(caller, "m", {"inputs": "hi"}) as stream:
        while stream.outcome is None:
            await stream.read()
        assert isinstance(stream.outcome, Ending)
        return stream.terminal_fields(stream.outcome)


def sent_tokens(setup: Setup) -> int:
    """How many tokens the last request is taken for."""
    return estimate_request_tokens(setup.provider.calls[-1].request.body)


async def spent(setup: Setup, model_id: str = "m") -> int:
    """What was spent of a model's budget."""
    model = await setup.models.get(ANYONE, model_id)
    charge = await setup.calls.budgets.charge(model_id, model.settings, "somebody else", b"")
    with charge:
        [place, *_] = [place for place, counter in enumerate(charge.plan.counters) if counter.user is None]
        return int(charge.spendings[place].tokens)


async def test_a_stream_is_paid_by_its_usage_and_says_what_is_left(setup: Setup) -> None:
    setup.provider.script = lambda request: stream_of(openai_event("a"), WITH_USAGE)
    await add_model(setup)
    await streamed(setup, Caller("ann"))
    told = await streamed(setup, Caller("bob"))
    assert told["spent"] == {"tokens": 12}
    assert [(budget["per"], budget["left"]) for budget in told["budgets"]] == [("model", 76), ("user", 88)]


async def test_a_stream_without_usage_is_estimated_by_request_and_chunks(setup: Setup) -> None:
    setup.provider.script = lambda request: stream_of(openai_event("a"), openai_event("b"), WITHOUT_USAGE)
    await add_model(setup)
    told = await streamed(setup)
    assert told["spent"] == {"tokens": sent_tokens(setup) + 2, "estimated": True}


@pytest.mark.parametrize("tokens", [b"1" + b"0" * 30, b"1e30", b"9007199254740992"])
async def test_a_count_that_is_too_large_to_be_counted_spends_every_budget(setup: Setup, tokens: bytes) -> None:
    setup.provider.script = lambda request: stream_of(openai_event("a"), WITH_USAGE.replace(b":7", b":" + tokens))
    await add_model(setup)
    told = await streamed(setup)
    assert [budget["left"] for budget in told["budgets"]] == [0, 0]
    with pytest.raises(Throttled):
        await streamed(setup)


async def test_a_model_without_budgets_says_nothing_and_counts_nothing(setup: Setup, tmp_path: Path) -> None:
    setup.provider.script = lambda request: stream_of(openai_event("a"), WITH_USAGE)
    await setup.add_model(connector_body())
    assert await streamed(setup) == {}
    assert not (tmp_path / "spending").exists()


async def test_a_guarded_stream_says_what_is_left_too(setup: Setup) -> None:
    setup.provider.script = lambda request: stream_of(openai_event("a"), openai_event("bomb"), WITH_USAGE)
    guard = {"type": "local_regex", "output_guardrail": {"regex": [".*bomb.*"]}}
    await add_model(setup, guardrails=guard)
    assert (await streamed(setup))["budgets"][0]["left"] == 88


async def test_a_client_that_leaves_pays_for_what_has_come(setup: Setup) -> None:
    setup.provider.script = lambda request: stream_of(openai_event("a"), openai_event("b"), WITH_USAGE)
    await add_model(setup)
    with pytest.raises(asyncio.CancelledError):
        async with setup.predictor.stream(ANYONE, "m", {"inputs": "hi"}) as stream:
            await stream.read()
            raise asyncio.CancelledError
    assert await spent(setup) == sent_tokens(setup) + 1


async def test_a_stream_that_breaks_off_pays_for_what_has_come_and_a_refused_one_nothing(setup: Setup) -> None:
    setup.provider.script = lambda request: stream_of(openai_event("a"), UpstreamError("broke off"))
    await add_model(setup)
    async with setup.predictor.stream(ANYONE, "m", {"inputs": "hi"}) as stream:
        while stream.outcome is None:
            await stream.read()
    before = sent_tokens(setup) + 1
    assert await spent(setup) == before
    setup.provider.script = lambda request: Response([b"no"], 500)
    with pytest.raises(UpstreamError):
        await streamed(setup)
    assert await spent(setup) == before


async def test_a_spent_budget_calls_no_provider_streamed_whole_or_batch(setup: Setup) -> None:
    setup.provider.script = lambda request: json_response({"usage": {"prompt_tokens": 60, "completion_tokens": 60}})
    batch = {**connector_body()["actions"][0], "action_type": "batch_predict"}
    await add_model(setup, connector=connector_body(actions=[*connector_body()["actions"], batch]))
    body = b'{"parameters": {"inputs": "hi"}}'
    await setup.predictor.predict(ANYONE, "m", body)
    for refused in (setup.predictor.predict, setup.predictor.batch_predict):
        with pytest.raises(Throttled, match=r"^The budget of model \[m\] is spent"):
            await refused(ANYONE, "m", body)
    with pytest.raises(Throttled):
        await streamed(setup)
    assert len(setup.provider.calls) == 1
    assert setup.counted("mlstream_predictions_total", model_id="m", status="429") == 1
    assert setup.counted("mlstream_refused_total", limit="model_budget", model_id="m") == 3


async def test_each_call_of_a_prediction_is_paid(setup: Setup) -> None:
    setup.provider.script = lambda request: json_response({"embedding": [0.5], "inputTextTokenCount": 3})
    functions = {
        "pre_process_function": "connector.pre_process.bedrock.embedding",
        "post_process_function": "connector.post_process.bedrock.embedding",
        "request_body": '{"inputText": "${parameters.inputText}"}',
    }
    await add_model(setup, connector=connector_body(EMBEDDING_URL, action=functions))
    await setup.predictor.predict(ANYONE, "m", b'{"text_docs": ["a", "b"]}', "text_embedding")
    assert len(setup.provider.calls) == 2
    assert await spent(setup) == 6


async def test_a_guard_model_has_its_own_budget(setup: Setup) -> None:
    setup.provider.script = lambda request: json_response(
        {"response": "accept", "usage": {"prompt_tokens": 20, "completion_tokens": 1}}
    )
    await add_model(setup, "judge", connector_body(action={"request_body": '{"question": "${parameters.question}"}'}))
    guard = {"model_id": "judge", "response_validation_regex": '"?accept"?'}
    await add_model(setup, guardrails={"type": "model", "input_guardrail": guard})
    await setup.predictor.predict(ANYONE, "m", b'{"parameters": {"inputs": "hi"}}')
    assert await spent(setup, "judge") == 21
    assert await spent(setup) == 21
