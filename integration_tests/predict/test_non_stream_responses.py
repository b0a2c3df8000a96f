"""A provider that ignores the request for a stream: what the caller is told, before the stream begins."""

import json
from collections.abc import Iterator

import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import blueprint_connector
from integration_tests.support.fake_provider import head, json_answer
from integration_tests.support.predict_calls import SECRET, reason
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.streamed_responses import stream

ASKED = {"parameters": {"inputs": "What is the meaning of life?"}}
PRESETS_ASKED = ("openai-chat", "anthropic-messages", "gemini-chat", "cohere-chat", "ollama-chat", "tgi-generate")


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("sidecar")) as running:
        yield running


@pytest.mark.parametrize("blueprint", [*PRESETS_ASKED, "mlserver-infer"])
def test_an_error_under_200_is_shown_in_the_providers_words_without_the_key(sidecar: Sidecar, blueprint: str) -> None:
    said = {"error": {"message": f"key {SECRET} may not use this model", "type": "permission_error"}}
    with background_provider(json_answer(said)) as provider:
        model_id = sidecar.create_model(blueprint_connector(blueprint, provider.url))
        answer = stream(sidecar, model_id, ASKED)
    assert "key *** may not use this model" in reason(answer, 424)


@pytest.mark.parametrize("blueprint", ["openai-chat", "ollama-chat"])
def test_an_error_over_several_lines_is_shown_too(sidecar: Sidecar, blueprint: str) -> None:
    said = json.dumps({"error": {"message": "too many requests", "type": "rate_limit_error"}}, indent=2).encode()
    script = [head(content_type="application/json", content_length=str(len(said))) + said]
    with background_provider(script) as provider:
        model_id = sidecar.create_model(blueprint_connector(blueprint, provider.url))
        answer = stream(sidecar, model_id, ASKED)
    assert reason(answer, 429) == "Error from remote service: too many requests"


@pytest.mark.parametrize("blueprint", ["openai-chat", "mlserver-infer"])
def test_a_whole_answer_is_refused_with_what_to_check(sidecar: Sidecar, blueprint: str) -> None:
    whole = {"choices": [{"message": {"role": "assistant", "content": "forty-two"}}]}
    with background_provider(json_answer(whole)) as provider:
        model_id = sidecar.create_model(blueprint_connector(blueprint, provider.url))
        answer = stream(sidecar, model_id, ASKED)
    said = reason(answer, 424)
    assert said.startswith("The provider answered application/json instead of the stream")
    assert "_llm_interface" in said and "forty-two" not in said
