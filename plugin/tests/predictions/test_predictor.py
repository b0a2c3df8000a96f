"""Whole predictions and guardrails through the Predictor: what is sent, refused and counted."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound, Throttled, UpstreamError
from opensearch_ml_stream.connectors.predict.guardrails.configuration import INPUT_TRIGGERED, OUTPUT_TRIGGERED
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.predictions.prediction_setup import CHAT_URL, EMBEDDING_URL, SECRET, Setup, connector_body, prediction_setup
from tests.predictions.scripted_provider import Response, ScriptedProvider, json_response, openai_stream

BY_PATTERN = r"^{} by regex\[0\]$"
BY_JUDGE = rf"^{INPUT_TRIGGERED} by guard model \[judge\]$"
JUDGE = connector_body(action={"request_body": '{"question": "${parameters.question}"}'})


def respond(request: ProviderRequest) -> Response:
    """Judges what is a question, repeats what is an input."""
    body = orjson.loads(request.body)
    if "question" in body:
        return json_response({"response": "reject" if "bomb" in body["question"] else "accept"})
    return json_response({"said": body["input"]})


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[Setup]:
    async with prediction_setup(tmp_path, ScriptedProvider(respond)) as setup:
        yield setup


async def predicted(setup: Setup, inputs: str = "hi", model_id: str = "m") -> Any:
    """The one response of the provider, as the caller sees it."""
    response = await setup.predictor.predict(ANYONE, model_id, orjson.dumps({"parameters": {"inputs": inputs}}))
    [result] = response["inference_results"]
    assert result["status_code"] == 200
    return result["output"][0]["dataAsMap"]


def predictions(setup: Setup, status: str, model_id: str = "m") -> float | None:
    return setup.counted("mlstream_predictions_total", model_id=model_id, status=status)


def guardrails(**fields: Any) -> dict[str, Any]:
    return {"type": "local_regex", **{f"{side}_guardrail": {"regex": [regex]} for side, regex in fields.items()}}


def model_guard(model_id: str, **fields: str) -> dict[str, Any]:
    guard = {"model_id": model_id, "response_validation_regex": '"?accept"?', **fields}
    return {"type": "model", "input_guardrail": guard}


async def test_a_prediction_is_one_call_and_is_counted(setup: Setup) -> None:
    await setup.add_model(connector_body())
    assert await predicted(setup) == {"said": "hi"}
    assert setup.provider.bodies == [{"input": "hi"}]
    assert predictions(setup, "200") == 1


@pytest.mark.parametrize(
    ("body", "reason", "status"),
    [
        ({"error": {"message": f"no {SECRET}", "code": "rate_limit_exceeded"}}, "no ***", 429),
        ({"error": "out of memory"}, "out of memory", 424),
        ({"Output": {"__type": "a#UnknownOperationException"}, "Version": "1.0"}, "UnknownOperationException", 424),
    ],
)
async def test_a_body_that_is_an_error_under_a_good_status_is_one(
    tmp_path: Path, body: dict[str, Any], reason: str, status: int
) -> None:
    async with prediction_setup(tmp_path, ScriptedProvider(lambda request: json_response(body))) as setup:
        await setup.add_model(connector_body())
        for predict in (setup.predictor.predict, setup.predictor.predict_encoded):
            with pytest.raises(UpstreamError) as raised:
                await predict(ANYONE, "m", b'{"parameters": {"inputs": "hi"}}')
            assert (raised.value.reason, raised.value.status) == (f"Error from remote service: {reason}", status)


@pytest.mark.parametrize("body", [{"detail": "down"}, {"code": 7, "message": "down"}, {"status": 500, "title": "down"}])
async def test_what_answers_look_like_is_known_of_a_providers_dialect(tmp_path: Path, body: dict[str, Any]) -> None:
    async with prediction_setup(tmp_path, ScriptedProvider(lambda request: json_response(body))) as setup:
        await setup.add_model(connector_body())
        with pytest.raises(UpstreamError, match=r"^Error from remote service: down$"):
            await predicted(setup)


@pytest.mark.parametrize(
    ("url", "body"),
    [
        (EMBEDDING_URL, {"error": None, "score": 1}),
        (EMBEDDING_URL, {"error": 0.5}),
        (EMBEDDING_URL, {"detail": "long", "code": 7}),
        (CHAT_URL, {"message": "hi"}),
        (CHAT_URL, {"message": {"content": "hi"}, "done": True, "detail": "long"}),
    ],
)
async def test_a_result_may_have_members_that_errors_have(tmp_path: Path, url: str, body: dict[str, Any]) -> None:
    async with prediction_setup(tmp_path, ScriptedProvider(lambda request: json_response(body))) as setup:
        await setup.add_model(connector_body(url))
        assert await predicted(setup) == body


async def test_an_encoded_prediction_is_the_same_as_compact_json(setup: Setup) -> None:
    await setup.add_model(connector_body())
    body = b'{"parameters": {"inputs": "hi"}}'
    encoded = await setup.predictor.predict_encoded(ANYONE, "m", body)
    assert encoded == orjson.dumps(await setup.predictor.predict(ANYONE, "m", body))
    assert predictions(setup, "200") == 2


async def test_an_error_of_the_provider_is_counted_by_our_status_and_its_own(setup: Setup) -> None:
    setup.provider.script = lambda request: Response([b"broken"], 500)
    await setup.add_model(connector_body())
    with pytest.raises(UpstreamError, match="broken"):
        await predicted(setup)
    assert (predictions(setup, "424"), predictions(setup, "200")) == (1, None)
    assert setup.counted("mlstream_provider_errors_total", model_id="m", provider_status="500") == 1


async def test_an_unknown_model_has_no_label_of_its_own(setup: Setup) -> None:
    with pytest.raises(NotFound):
        await predicted(setup, model_id="made-up")
    assert predictions(setup, "404", "unknown") == 1
    assert b"made-up" not in setup.metrics.text()


async def test_a_rate_limit_is_per_call_of_the_provider(setup: Setup) -> None:
    await setup.add_model(connector_body(), rate_limiter={"limit": "2", "unit": "HOURS"})
    await predicted(setup)
    await predicted(setup)
    with pytest.raises(Throttled):
        await predicted(setup)
    assert len(setup.provider.calls) == 2
    assert (predictions(setup, "200"), predictions(setup, "429")) == (2, 1)


async def test_a_body_that_is_no_prediction_is_refused_before_the_model_is_read(setup: Setup) -> None:
    with pytest.raises(InvalidRequest):
        await setup.predictor.predict(ANYONE, "m", b"[]")
    with pytest.raises(InvalidRequest, match=r"^Algorithm \[other\]"):
        await setup.predictor.predict(ANYONE, "m", b"{}", "other")
    assert b"mlstream_predictions_total{" not in setup.metrics.text()


async def test_regular_expressions_guard_both_sides(setup: Setup) -> None:
    await setup.add_model(connector_body(), guardrails=guardrails(input=".*bomb.*", output=".*cake.*"))
    assert await predicted(setup) == {"said": "hi"}
    with pytest.raises(InvalidRequest, match=BY_PATTERN.format(INPUT_TRIGGERED)):
        await predicted(setup, "a bomb")
    assert len(setup.provider.calls) == 1
    with pytest.raises(InvalidRequest, match=BY_PATTERN.format(OUTPUT_TRIGGERED)):
        await predicted(setup, "a cake")
    assert predictions(setup, "400") == 2


async def test_a_stream_is_guarded_on_its_input_in_the_charset_it_is_sent_in(setup: Setup) -> None:
    setup.provider.script = lambda request: openai_stream("never sent")
    await setup.add_model(connector_body(parameters={"charset": "utf-16"}), guardrails=guardrails(input=".*bomb.*"))
    with pytest.raises(InvalidRequest, match=BY_PATTERN.format(INPUT_TRIGGERED)):
        async with setup.predictor.stream(ANYONE, "m", {"inputs": "a bomb"}):
            pass
    assert setup.provider.calls == []
    async with setup.predictor.stream(ANYONE, "m", {"inputs": "a cake"}):
        pass
    assert "a cake" in setup.provider.calls[0].request.body.decode("utf-16")


async def test_a_guard_model_is_asked_about_the_text_that_would_be_sent(setup: Setup) -> None:
    await setup.add_model(JUDGE, "judge")
    await setup.add_model(connector_body(), guardrails=model_guard("judge"))
    assert await predicted(setup) == {"said": "hi"}
    assert setup.provider.bodies == [{"question": '{"input": "hi"}'}, {"input": "hi"}]
    with pytest.raises(InvalidRequest, match=BY_JUDGE):
        await predicted(setup, "a bomb")
    assert len(setup.provider.calls) == 3
    assert predictions(setup, "200", "judge") == 2


async def test_a_stream_and_a_batch_job_are_guarded_by_the_model_too(setup: Setup) -> None:
    await setup.add_model(JUDGE, "judge")
    batch = {"action_type": "batch_predict", "method": "POST", "url": "https://api.openai.com/v1/batches"}
    actions = [*connector_body()["actions"], {**batch, "request_body": '{"input": "${parameters.inputs}"}'}]
    await setup.add_model(connector_body(actions=actions), guardrails=model_guard("judge"))
    with pytest.raises(InvalidRequest, match=BY_JUDGE):
        async with setup.predictor.stream(ANYONE, "m", {"inputs": "a bomb"}):
            pass
    with pytest.raises(InvalidRequest, match=BY_JUDGE):
        await setup.predictor.batch_predict(ANYONE, "m", b'{"parameters": {"inputs": "a bomb"}}')
    assert [list(body) for body in setup.provider.bodies if isinstance(body, dict)] == [["question"], ["question"]]


@pytest.mark.parametrize("own_filter", [{}, {"response_filter": "$.nothing"}])
async def test_a_response_filter_reads_the_guard_models_whole_response(
    setup: Setup, own_filter: dict[str, str]
) -> None:
    await setup.add_model({**JUDGE, "parameters": own_filter}, "judge")
    await setup.add_model(connector_body(), guardrails=model_guard("judge", response_filter="$.response"))
    assert await predicted(setup) == {"said": "hi"}
    with pytest.raises(InvalidRequest, match=BY_JUDGE):
        await predicted(setup, "a bomb")


@pytest.mark.parametrize("response", [{"other": "accept"}, [], "accept"])
async def test_without_a_filter_only_the_field_response_or_the_whole_is_read(setup: Setup, response: Any) -> None:
    setup.provider.script = lambda request: json_response(response)
    await setup.add_model(JUDGE, "judge")
    await setup.add_model(connector_body(), guardrails=model_guard("judge"))
    if response == "accept":
        await predicted(setup)
    else:
        with pytest.raises(InvalidRequest, match=BY_JUDGE):
            await predicted(setup)


async def test_a_model_may_not_guard_itself_nor_through_others(setup: Setup) -> None:
    looped = "it is guarded, directly or through others, by this very guardrail"
    await setup.add_model(connector_body(), guardrails=model_guard("m"))
    with pytest.raises(InvalidRequest) as raised:
        await predicted(setup)
    assert raised.value.reason == f"{INPUT_TRIGGERED}: its guard model [m] cannot be called: {looped}"
    await setup.add_model(JUDGE, "one", guardrails=model_guard("other"))
    await setup.add_model(JUDGE, "other", guardrails=model_guard("one"))
    with pytest.raises(InvalidRequest, match=looped):
        await setup.predictor.predict(ANYONE, "one", b'{"parameters": {"question": "x"}}')
    assert setup.provider.calls == []


async def test_a_guard_model_that_is_guarded_by_a_third_is_no_loop(setup: Setup) -> None:
    await setup.add_model(JUDGE, "third")
    await setup.add_model(JUDGE, "judge", guardrails=model_guard("third"))
    await setup.add_model(connector_body(), guardrails=model_guard("judge"))
    assert await predicted(setup) == {"said": "hi"}
    assert len(setup.provider.calls) == 3
