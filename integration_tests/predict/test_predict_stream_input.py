"""What happens to a request before its stream begins: interface, processors, structured output."""

import json
from typing import Any

import httpx
import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.predict_calls import reason
from integration_tests.support.sidecars import Sidecar


def stream(sidecar: Sidecar, model_id: str, **parameters: Any) -> httpx.Response:
    return sidecar.client.post(f"/_plugins/_ml/models/{model_id}/_predict/stream", json={"parameters": parameters})


def test_an_input_that_breaks_the_interface_never_reaches_the_provider(sidecar: Sidecar) -> None:
    schema = {"properties": {"parameters": {"properties": {"inputs": {"type": "string", "maxLength": 3}}}}}
    with background_provider(openai_stream(["hi"])) as provider:
        model_id = sidecar.create_model(openai(provider.url), interface={"input": schema})
        assert "$.parameters.inputs: breaks the rule maxLength 3" in reason(stream(sidecar, model_id, inputs="long"))
        assert provider.requests == []
        assert stream(sidecar, model_id, inputs="abc").status_code == 200


@pytest.mark.parametrize(
    "processor",
    [
        {"type": "set_field", "path": "$.seed", "value": 7},
        {"type": "jsonpath_filter", "path": "$.messages[0]"},  # another body altogether
        {"type": "remove_jsonpath", "path": "$.stream"},
    ],
)
def test_processors_change_the_body_but_not_that_it_streams(sidecar: Sidecar, processor: dict[str, Any]) -> None:
    with background_provider(openai_stream(["hi"])) as provider:
        model_id = sidecar.create_model(openai(provider.url))
        response = stream(sidecar, model_id, inputs="x", input_processors=[processor])
    assert '"response":"hi"' in response.text
    sent = provider.requests[0].json()
    assert sent["stream"] is True
    if processor["type"] == "set_field":
        assert sent["seed"] == 7
    if processor["type"] == "jsonpath_filter":
        assert sent["content"] == "x"


def test_structured_output_is_requested_in_a_stream_too(sidecar: Sidecar) -> None:
    with background_provider(openai_stream(["{}"])) as provider:
        connector = openai(provider.url)
        connector["actions"][0]["supports_structured_output"] = True
        model_id = sidecar.create_model(connector)
        response_format = {"type": "json_object"}
        assert (
            stream(sidecar, model_id, inputs="x", _response_format_json=json.dumps(response_format)).status_code == 200
        )
    sent = provider.requests[0].json()
    assert (sent["response_format"], sent["stream"]) == (response_format, True)
