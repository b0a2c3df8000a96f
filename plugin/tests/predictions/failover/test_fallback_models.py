"""Fallback models: which failures they answer for, in which order, for whom, and what is said and counted of them."""

import gc
import weakref
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.chunks import Ending, to_chunk_list
from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, Throttled, UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.predictions.prediction_setup import Setup, connector_body, prediction_setup
from tests.predictions.scripted_provider import SSE, Response, ScriptedProvider, json_response, openai_stream

URLS = {
    "first": "https://api.openai.com/v1/chat/completions",
    "second": "https://api.groq.com/openai/v1/chat/completions",
    "third": "https://api.mistral.ai/v1/chat/completions",
}
QUESTION = {"inputs": "hi"}
OVERLOADED = json_response({"error": {"message": "overloaded"}}, 503)


class Providers:
    """What the provider of each model responds; at first each streams its model's name."""

    def __init__(self) -> None:
        self.responses: dict[str, Response] = {}
        self.called: list[str] = []

    def __call__(self, request: ProviderRequest) -> Response:
        name = next(name for name, url in URLS.items() if request.url == url)
        self.called.append(name)
        return replace(self.responses.get(name) or openai_stream(name), reads=0)


@pytest.fixture
def providers() -> Providers:
    return Providers()


@pytest.fixture
async def setup(tmp_path: Path, providers: Providers) -> AsyncIterator[Setup]:
    async with prediction_setup(tmp_path, ScriptedProvider(providers)) as setup:
        for name, url in URLS.items():
            await setup.add_model(connector_body(url), name)
        await put_settings(setup, fallback_model_ids=["second", "third"])
        yield setup


async def put_settings(setup: Setup, id: str = "first", **settings: Any) -> None:
    await setup.store.put(Index.MODEL_SETTINGS, id, {"settings": settings})


async def streamed(setup: Setup, caller: Caller = ANYONE) -> tuple[str, dict[str, Any]]:
    """The text of a stream of the first model, and what its terminal object says beside the ending."""
    text = ""
    async with setup.predictor.stream(caller, "first", QUESTION) as stream:
        while stream.outcome is None:
            text += "".join(chunk.text for chunk in to_chunk_list(await stream.read()))
        if isinstance(stream.outcome, MLStreamError):
            raise stream.outcome
        assert isinstance(stream.outcome, Ending)
        return text, stream.terminal_fields(stream.outcome)


@pytest.mark.parametrize(
    "failure",
    [
        OVERLOADED,
        json_response({"error": {"message": "no such key"}}, 401),
        json_response({"error": {"message": "slow down"}}, 429),
        Response([UpstreamError("reset")], headers=SSE),
        Response([b'data: {"error":{"message":"overloaded"}}\n\n'], headers=SSE),
        Response([], headers=SSE),
    ],
    ids=["5xx", "401", "429", "reset", "error event", "truncated"],
)
async def test_a_provider_that_fails_before_its_first_chunk_is_answered_for(
    setup: Setup, providers: Providers, failure: Response
) -> None:
    providers.responses["first"] = failure
    assert await streamed(setup) == ("second", {"model_id": "second"})
    assert providers.called == ["first", "second"]
    assert not any(call.is_open for call in setup.provider.calls)


async def test_the_model_answers_itself_where_it_can_and_its_chunks_come_once_and_in_order(
    setup: Setup, providers: Providers
) -> None:
    providers.responses["first"] = openai_stream("a", "b", "c")
    assert await streamed(setup) == ("abc", {"model_id": "first"})
    assert providers.called == ["first"]


async def test_fallbacks_are_tried_in_order_and_if_all_fail_the_models_own_error_is_told(
    setup: Setup, providers: Providers
) -> None:
    providers.responses = {"first": OVERLOADED, "second": json_response({}, 500)}
    assert (await streamed(setup))[0] == "third"
    providers.responses["third"] = Response([], 500)
    with pytest.raises(UpstreamError, match="overloaded") as failed:
        await streamed(setup)
    assert failed.value.reason.endswith("; no fallback model answered either")
    assert failed.value.provider_status == 503
    assert providers.called == ["first", "second", "third"] * 2


async def test_a_stream_that_breaks_after_its_first_chunk_is_not_begun_again(
    setup: Setup, providers: Providers
) -> None:
    providers.responses["first"] = Response([*openai_stream("a").parts[:1], UpstreamError("reset")], headers=SSE)
    with pytest.raises(UpstreamError, match="reset"):
        await streamed(setup)
    assert providers.called == ["first"]


async def test_what_the_caller_has_to_mend_is_told_at_once(setup: Setup, providers: Providers) -> None:
    providers.responses["first"] = json_response({"error": {"message": "too long"}}, 400)
    with pytest.raises(UpstreamError, match="too long"):
        await streamed(setup)
    with pytest.raises(InvalidRequest):
        async with setup.predictor.stream(ANYONE, "first", {}):
            pass
    assert providers.called == ["first"]


async def test_a_limit_of_the_model_is_answered_for_by_a_model_that_has_none(
    setup: Setup, providers: Providers
) -> None:
    document = await setup.store.get(Index.MODEL, "first")
    assert document is not None
    limited = {**document.source, "rate_limiter": {"limit": "1", "unit": "DAYS"}}
    await setup.store.put(Index.MODEL, "first", limited)
    assert [(await streamed(setup))[0] for _ in range(2)] == ["first", "second"]
    none = {"limit": "0", "unit": "DAYS"}
    for name in ("second", "third"):
        await setup.store.put(Index.MODEL, name, {**limited, "name": name, "rate_limiter": none})
    setup.models._entries.forget(lambda model_id, entry: True)
    with pytest.raises(Throttled):
        await streamed(setup)


async def test_a_fallback_that_the_caller_may_not_use_or_that_is_no_more_is_left_out(
    setup: Setup, providers: Providers
) -> None:
    setup.live.current = Settings(model_access_control_enabled=True)
    group = {"name": "g", "access": "private", "owner": {"name": "ann", "backend_roles": [], "roles": []}}
    await setup.store.create(Index.MODEL_GROUP, group, "g")
    document = await setup.store.get(Index.MODEL, "second")
    assert document is not None
    await setup.store.put(Index.MODEL, "second", {**document.source, "model_group_id": "g"})
    await put_settings(setup, fallback_model_ids=["gone", "second", "third"])
    providers.responses["first"] = OVERLOADED
    assert (await streamed(setup, Caller("bob")))[0] == "third"
    assert (await streamed(setup, Caller("ann")))[0] == "second"


@pytest.mark.parametrize(
    "caps", [Settings(max_streams_per_server=1), Settings(max_streams_per_user=1)], ids=["server", "user"]
)
async def test_a_cap_over_all_models_is_not_answered_for(setup: Setup, providers: Providers, caps: Settings) -> None:
    setup.live.current = replace(caps, stream_queue_seconds=0)
    async with setup.predictor.stream(Caller("ann"), "third", QUESTION):
        with pytest.raises(Throttled) as refused:
            await streamed(setup, Caller("ann"))
    assert "no fallback model" not in refused.value.reason
    assert setup.counted("mlstream_fallbacks_total", fallback_model_id="second", model_id="first") is None
    assert providers.called == ["third"]


async def test_a_fallback_that_such_a_cap_refuses_is_the_last(setup: Setup, providers: Providers) -> None:
    setup.live.current = Settings(max_streams_per_server=2, stream_queue_seconds=0)

    def overload(request: ProviderRequest) -> Response:
        setup.live.current = replace(setup.live.current, max_streams_per_server=1)  # or another took the place
        return OVERLOADED

    async with setup.predictor.stream(ANYONE, "third", QUESTION):
        setup.provider.script = overload
        with pytest.raises(UpstreamError, match="overloaded"):
            await streamed(setup)
    assert setup.counted("mlstream_refused_total", limit="server_streams", model_id="second") == 1
    assert setup.counted("mlstream_fallbacks_total", fallback_model_id="third", model_id="first") is None


async def test_fallbacks_of_a_fallback_are_not_tried(setup: Setup, providers: Providers) -> None:
    await put_settings(setup, fallback_model_ids=["second"])
    await put_settings(setup, "second", fallback_model_ids=["third"])
    providers.responses = {"first": OVERLOADED, "second": OVERLOADED}
    with pytest.raises(UpstreamError):
        await streamed(setup)
    assert providers.called == ["first", "second"]


async def test_a_whole_prediction_falls_back_too_and_says_which_model_answered(
    setup: Setup, providers: Providers
) -> None:
    providers.responses = {"first": OVERLOADED, "second": json_response({"answer": 42})}
    response = await setup.predictor.predict(ANYONE, "first", b'{"parameters": {"inputs": "hi"}}')
    assert response["model_id"] == "second"
    assert response["inference_results"][0]["output"][0]["dataAsMap"] == {"answer": 42}
    await put_settings(setup, fallback_model_ids=[])
    setup.models._entries.forget(lambda model_id, entry: True)
    providers.responses["first"] = json_response({"answer": 1})
    assert "model_id" not in await setup.predictor.predict(ANYONE, "first", b'{"parameters": {"inputs": "hi"}}')


async def test_each_model_is_counted_by_how_it_did(setup: Setup, providers: Providers) -> None:
    providers.responses["first"] = OVERLOADED
    await streamed(setup)
    assert setup.counted("mlstream_fallbacks_total", fallback_model_id="second", model_id="first") == 1
    assert setup.counted("mlstream_provider_errors_total", model_id="first", provider_status="503") == 1
    assert setup.counted("mlstream_streams_total", model_id="second", outcome="ok") == 1
    assert setup.counted("mlstream_streams_total", model_id="first", outcome="ok") is None
    failed, did = setup.statistics.model("first"), setup.statistics.model("second")
    assert failed is not None and did is not None
    assert (failed.actions["predict"].failures, did.actions["predict"].failures) == (1, 0)
    assert not setup.statistics.running()


async def test_where_none_answers_each_model_is_counted_by_its_own_failure(setup: Setup, providers: Providers) -> None:
    document = await setup.store.get(Index.MODEL, "first")
    assert document is not None
    none = {"limit": "0", "unit": "DAYS"}
    await setup.store.put(Index.MODEL, "first", {**document.source, "rate_limiter": none})
    providers.responses = {"second": OVERLOADED, "third": json_response({}, 500)}
    with pytest.raises(Throttled):
        await streamed(setup)
    with pytest.raises(Throttled):
        await setup.predictor.predict(ANYONE, "first", b'{"parameters": {"inputs": "hi"}}')
    assert setup.counted("mlstream_refused_total", limit="model_rate", model_id="first") == 2
    assert setup.counted("mlstream_refused_total", limit="model_rate", model_id="third") is None
    assert setup.counted("mlstream_provider_errors_total", model_id="second", provider_status="503") == 2
    assert setup.counted("mlstream_provider_errors_total", model_id="third", provider_status="500") == 2
    assert setup.counted("mlstream_streams_total", model_id="third", outcome="error") == 1
    assert setup.counted("mlstream_predictions_total", model_id="third", status="424") == 1
    counted = {name: setup.statistics.model(name) for name in URLS}
    actions = {name: figures.actions["predict"] for name, figures in counted.items() if figures is not None}
    assert {name: action.failures for name, action in actions.items()} == {"first": 2, "second": 2, "third": 2}


async def test_a_guard_model_and_what_it_guards_are_no_loop_though_one_answers_for_the_other(
    setup: Setup, providers: Providers
) -> None:
    guard = {"model_id": "first", "response_validation_regex": '"?accept"?'}
    guarded = {"guardrails": {"type": "model", "input_guardrail": guard}}
    for name, more in (("first", {}), ("second", guarded)):
        await setup.store.delete(Index.MODEL, name)
        await setup.add_model(connector_body(URLS[name], action={"request_body": "{}"}), name, **more)
    await put_settings(setup, fallback_model_ids=["second"])
    providers.responses["first"] = OVERLOADED
    with pytest.raises(UpstreamError, match="overloaded"):
        await streamed(setup)
    with pytest.raises(UpstreamError, match="overloaded"):
        await setup.predictor.predict(ANYONE, "first", b'{"parameters": {"inputs": "hi"}}')
    assert providers.called == ["first"] * 4


class Parameters(dict[str, str]):
    """Parameters that can be watched."""


async def test_a_prompt_is_not_kept_while_a_fallbacks_response_streams(setup: Setup, providers: Providers) -> None:
    providers.responses["first"] = OVERLOADED
    parameters = Parameters(QUESTION)
    is_kept = weakref.ref(parameters)
    gc.disable()  # what the collection alone would free, it frees much later
    try:
        opening = setup.predictor.stream(ANYONE, "first", parameters)
        del parameters
        async with opening:
            assert providers.called == ["first", "second"]
            assert is_kept() is None
    finally:
        gc.enable()


async def test_a_parameter_that_only_a_fallback_refuses_is_that_fallbacks_failure(
    setup: Setup, providers: Providers
) -> None:
    url, host = "https://${parameters.host}/openai/v1/chat/completions", "api.groq.com"
    await setup.add_model(connector_body(url, parameters={"host": host}), "strict")
    await put_settings(setup, fallback_model_ids=["strict", "third"])
    providers.responses["first"] = OVERLOADED
    parameters = {"inputs": "hi", "host": "evil.example"}
    async with setup.predictor.stream(ANYONE, "first", parameters) as stream:
        assert await stream.read()
    body = orjson.dumps({"parameters": parameters})
    with pytest.raises(InvalidRequest, match=r"may not set \[host\]"):
        await setup.predictor.predict(ANYONE, "strict", body)
    assert providers.called == ["first", "third"]
