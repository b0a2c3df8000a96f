"""A provider that ignores the request for a stream: the error that the client gets before the stream begins."""

import json

import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import blueprint_connector
from integration_tests.support.fake_provider import head, json_response
from integration_tests.support.predict_calls import SECRET, reason
from integration_tests.support.sidecars import Sidecar
from integration_tests.support.streamed_responses import objects, stream

QUESTION = {"parameters": {"inputs": "What is the meaning of life?"}}


@pytest.mark.parametrize("blueprint", ["openai-chat", "ollama-chat", "mlserver-infer"])  # SSE, NDJSON, none
def test_an_error_under_200_is_shown_in_the_providers_words_without_the_key(sidecar: Sidecar, blueprint: str) -> None:
    error = {"error": {"message": f"key {SECRET} may not use this model", "type": "permission_error"}}
    with background_provider(json_response(error)) as provider:
        model_id = sidecar.create_model(blueprint_connector(blueprint, provider.url))
        response = stream(sidecar, model_id, QUESTION)
    assert "key *** may not use this model" in reason(response, 424)


@pytest.mark.parametrize("blueprint", ["openai-chat", "ollama-chat"])
def test_an_error_over_several_lines_is_shown_too(sidecar: Sidecar, blueprint: str) -> None:
    body = json.dumps({"error": {"message": "too many requests", "type": "rate_limit_error"}}, indent=2).encode()
    script = [head(content_type="application/json", content_length=str(len(body))) + body]
    with background_provider(script) as provider:
        model_id = sidecar.create_model(blueprint_connector(blueprint, provider.url))
        response = stream(sidecar, model_id, QUESTION)
    assert reason(response, 429) == "Error from remote service: too many requests"


@pytest.mark.parametrize("blueprint", ["openai-chat", "mlserver-infer"])
def test_a_whole_response_that_was_paid_for_is_delivered_as_one_chunk(sidecar: Sidecar, blueprint: str) -> None:
    usage = {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}
    message = {"role": "assistant", "content": "forty-two"}
    whole = {"model": "m", "choices": [{"message": message, "finish_reason": "length"}], "usage": usage}
    with background_provider(json_response(whole)) as provider:
        model_id = sidecar.create_model(blueprint_connector(blueprint, provider.url))
        response = stream(sidecar, model_id, QUESTION)
    chunk, ending = objects(response)
    assert chunk["response"] == "forty-two"
    assert (ending["finish_reason"], ending["model"]) == ("length", "m")
    assert ending["usage"] == {"input_tokens": 2, "output_tokens": 3, "total_tokens": 5}


@pytest.mark.parametrize("blueprint", ["openai-chat", "mlserver-infer"])
def test_another_whole_response_is_refused_with_what_to_check(sidecar: Sidecar, blueprint: str) -> None:
    whole = {"message": "forty-two"}
    with background_provider(json_response(whole)) as provider:
        model_id = sidecar.create_model(blueprint_connector(blueprint, provider.url))
        response = stream(sidecar, model_id, QUESTION)
    message = reason(response, 424)
    assert message.startswith("The provider responded with application/json instead of the stream")
    assert "_llm_interface" in message and "forty-two" not in message
