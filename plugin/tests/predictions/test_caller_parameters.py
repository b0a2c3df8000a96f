"""Calls of a scripted provider: whose parameters say where they go, and for which region they are signed."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.predictions.prediction_setup import EMBEDDING_URL, Setup, connector_body, prediction_setup
from tests.predictions.scripted_provider import Response, ScriptedProvider, json_response

AWS = {
    "protocol": "aws_sigv4",
    "credential": {"access_key": "AKID", "secret_key": "of-aws"},
}
BEDROCK = "https://bedrock-runtime.${parameters.region}.amazonaws.com/model/${parameters.model}/invoke"
OWN = {"region": "us-east-1", "service_name": "bedrock", "model": "amazon.nova"}


def respond(request: ProviderRequest) -> Response:
    if "embeddings" in request.url:
        texts = orjson.loads(request.body)["input"]
        return json_response({"data": [{"index": n, "embedding": [1.0]} for n in range(len(texts))]})
    return json_response({"response": "accept"})


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[Setup]:
    async with prediction_setup(tmp_path, ScriptedProvider(respond)) as setup:
        yield setup


async def predict(setup: Setup, model_id: str = "m", **parameters: str) -> Any:
    return await setup.predictor.predict(ANYONE, model_id, orjson.dumps({"parameters": {"inputs": "hi", **parameters}}))


def sent(setup: Setup) -> list[str]:
    return [call.request.url for call in setup.provider.calls]


async def test_a_request_neither_leads_nor_signs_for_another_region(setup: Setup) -> None:
    await setup.add_model(connector_body(BEDROCK, parameters=OWN, action={"headers": {}}, **AWS))
    with pytest.raises(InvalidRequest, match=r"may not set \[region\]"):
        await predict(setup, region="eu-west-1")
    assert sent(setup) == []
    await predict(setup, model="amazon.titan", service_name="s3")
    [call] = setup.provider.calls
    assert call.request.url == "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.titan/invoke"
    assert "/us-east-1/bedrock/aws4_request" in call.request.headers["Authorization"]


async def test_a_signature_is_for_the_connectors_own_region_though_callers_may_choose_the_host(setup: Setup) -> None:
    parameters = {**OWN, "_caller_parameters": '["region"]'}
    await setup.add_model(connector_body(BEDROCK, parameters=parameters, action={"headers": {}}, **AWS))
    await predict(setup, region="eu-west-1")
    [call] = setup.provider.calls
    assert call.request.url.startswith("https://bedrock-runtime.eu-west-1.amazonaws.com/")
    assert "/us-east-1/bedrock/aws4_request" in call.request.headers["Authorization"]


async def test_what_a_caller_sends_leads_no_guard_model_elsewhere(setup: Setup) -> None:
    own = {"host": "api.openai.com"}
    guard_body = '{"input": "${parameters.question}"}'
    guard_url = "https://${parameters.host}/v1/guard"
    await setup.add_model(connector_body(guard_url, parameters=own, action={"request_body": guard_body}), "guard")
    guard = {"model_id": "guard", "response_validation_regex": '"?accept"?'}
    await setup.add_model(connector_body(), guardrails={"type": "model", "input_guardrail": guard})
    await predict(setup, host="evil.example")
    assert sent(setup)[0] == "https://api.openai.com/v1/guard"
    with pytest.raises(InvalidRequest, match=r"may not set \[host\]"):
        await predict(setup, "guard", question="hi", host="evil.example")


@pytest.mark.parametrize("batching", [None, {"max_docs": 8, "max_wait_ms": 1}])
async def test_texts_go_nowhere_else_merged_or_alone(setup: Setup, batching: dict[str, int] | None) -> None:
    url = EMBEDDING_URL.replace("api.openai.com", "${parameters.host}")
    function = "connector.pre_process.openai.embedding"
    action = {"request_body": '{"input": ${parameters.input}}', "pre_process_function": function}
    await setup.add_model(connector_body(url, parameters={"host": "api.openai.com"}, action=action))
    if batching is not None:
        await setup.store.put(Index.MODEL_SETTINGS, "m", {"settings": {"batching": batching}})
    texts = {"text_docs": ["a"], "parameters": {"host": "evil.example"}}
    with pytest.raises(InvalidRequest, match=r"may not set \[host\]"):
        await setup.predictor.predict(ANYONE, "m", orjson.dumps(texts), "text_embedding")
    assert sent(setup) == []
    await setup.predictor.predict(ANYONE, "m", orjson.dumps({"text_docs": ["a"]}), "text_embedding")
    assert sent(setup) == [EMBEDDING_URL]
