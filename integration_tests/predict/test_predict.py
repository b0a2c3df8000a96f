"""`_predict`: from a request's body over the connector's functions to tensors, through a real sidecar."""

import json
from typing import Any

import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import blueprint_connector
from integration_tests.support.fake_provider import Act, Gate, Request, Script, head, json_response
from integration_tests.support.predict_calls import SECRET, ask, connector, data_as_map, outputs, predict, reason
from integration_tests.support.sidecars import Sidecar


def vectors_of(request: Request) -> Script:
    """Each text's length as its vector, in OpenAI's shape."""
    vectors = [[len(text), 0.5] for text in request.json()["input"]]
    return json_response({"data": [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]})


@pytest.mark.parametrize("algorithm", ["", "text_embedding"])
def test_texts_become_vectors_in_one_call(sidecar: Sidecar, algorithm: str) -> None:
    with background_provider(vectors_of) as provider:
        model_id = sidecar.create_model(blueprint_connector("openai-embedding", provider.url))
        flags = {"return_number": True, "target_response": ["sentence_embedding"]}
        response = predict(sidecar, model_id, {"text_docs": ["a", 'say "hé"'], **flags}, algorithm)
    assert outputs(response) == [
        [
            {"name": "sentence_embedding", "data_type": "FLOAT32", "shape": [2], "data": [1, 0.5]},
            {"name": "sentence_embedding", "data_type": "FLOAT32", "shape": [2], "data": [8, 0.5]},
        ]
    ]
    [request] = provider.requests
    assert request.json() == {"model": "text-embedding-3-small", "input": ["a", 'say "hé"']}
    assert request.headers["authorization"] == f"Bearer {SECRET}"


def test_texts_are_ranked_in_their_own_order(sidecar: Sidecar) -> None:
    scores = [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.2}]
    with background_provider(json_response({"results": scores})) as provider:
        model_id = sidecar.create_model(blueprint_connector("cohere-rerank", provider.url))
        response = predict(sidecar, model_id, {"query_text": "q", "text_docs": ["x", "y"]}, "text_similarity")
    [output] = outputs(response)
    assert [tensor["data"] for tensor in output] == [[0.2], [0.9]]
    assert output[0] == {"name": "similarity", "data_type": "FLOAT32", "shape": [1], "data": [0.2]}
    sent = provider.requests[0].json()
    assert (sent["query"], sent["documents"], sent["top_n"]) == ("q", ["x", "y"], 2)


@pytest.mark.parametrize(
    ("texts", "sent"),
    [(["words", "aW1n"], {"text": "words", "image": "aW1n"}), (["words"], {"text": "words", "image": None})],
)
def test_a_text_with_its_image_is_one_multimodal_input(sidecar: Sidecar, texts: list[str], sent: Any) -> None:
    body = '{"text": "${parameters.inputText:-null}", "image": "${parameters.inputImage:-null}"}'
    functions: dict[str, Any] = {
        "pre_process_function": "connector.pre_process.bedrock.multimodal_embedding",
        "post_process_function": "connector.post_process.bedrock.embedding",
    }
    with background_provider(json_response({"embedding": [0.25]})) as provider:
        model_id = sidecar.create_model(connector(provider.url, body, **functions))
        response = predict(sidecar, model_id, {"text_docs": texts})
    assert outputs(response)[0][0]["data"] == [0.25]
    assert provider.requests[0].json() == sent


@pytest.mark.parametrize(
    ("response_filter", "expected"),
    [
        (None, {"choices": [{"text": "hi"}], "n": 1}),
        ("$.choices[0].text", {"response": "hi"}),
        ("$.choices[*].text", {"response": ["hi"]}),
        ("$.choices[0]", {"text": "hi"}),
    ],
)
def test_the_response_filter_chooses_a_part_of_the_response(
    sidecar: Sidecar, response_filter: str | None, expected: dict[str, Any]
) -> None:
    with background_provider(json_response({"choices": [{"text": "hi"}], "n": 1})) as provider:
        model_id = sidecar.create_model(connector(provider.url))
        parameters = {"response_filter": response_filter} if response_filter else {}
        assert data_as_map(ask(sidecar, model_id, inputs="x", **parameters)) == expected


def test_a_response_filter_without_a_match_is_424_and_names_its_path(sidecar: Sidecar) -> None:
    with background_provider(json_response({"choices": [{"text": "hi"}]})) as provider:
        model_id = sidecar.create_model(connector(provider.url))
        response = ask(sidecar, model_id, inputs="x", response_filter="$.nothing")
    assert response.status_code == 424
    assert response.json()["error"]["reason"].startswith("The provider's response has nothing at [$.nothing]")


def test_many_texts_go_in_steps_beside_each_other_and_keep_their_order(sidecar: Sidecar) -> None:
    unplayed, all_asked = [], Gate()

    def script(request: Request) -> Script:
        unplayed.append(len(provider.requests) - provider.played)
        if len(provider.requests) == 10:
            all_asked.open()
        # The response to the first texts comes last.
        return [all_asked, *vectors_of(request)] if "00" in request.json()["input"][0] else vectors_of(request)

    texts = [f"{number:02}" + "x" * number for number in range(20)]
    with background_provider(script) as provider:
        body = blueprint_connector("openai-embedding", provider.url, input_docs_processed_step_size="2")
        body["client_config"] = {"max_connection": 3}
        response = outputs(predict(sidecar, sidecar.create_model(body), {"text_docs": texts}))
    assert [[tensor["data"][0] for tensor in output] for output in response] == [
        [2 + first, 3 + first] for first in range(0, 20, 2)
    ]
    assert len(provider.requests) == 10
    assert 2 <= max(unplayed) <= 3


def test_one_call_that_fails_fails_the_prediction_with_its_own_status(sidecar: Sidecar) -> None:
    def script(request: Request) -> Script:
        if request.json()["input"] == ["bad"]:
            return json_response({"error": "too long"}, 422)
        return [Act.WAIT]  # the others are given up

    with background_provider(script) as provider:
        body = blueprint_connector("openai-embedding", provider.url, input_docs_processed_step_size="1")
        response = predict(sidecar, sidecar.create_model(body), {"text_docs": ["a", "bad", "c"]})
    assert reason(response) == "Error from remote service: too long"


def test_processors_change_the_request_and_the_response(sidecar: Sidecar) -> None:
    parameters = {
        "input_processors": json.dumps([{"type": "set_field", "path": "$.seed", "value": 7}]),
        "output_processors": json.dumps([{"type": "regex_capture", "pattern": "<b>(.*)</b>", "groups": "1"}]),
        "response_filter": "$.text",
    }
    with background_provider(json_response({"text": "so <b>bold</b>"})) as provider:
        model_id = sidecar.create_model(connector(provider.url, parameters=parameters))
        assert data_as_map(ask(sidecar, model_id, inputs="x")) == {"response": "bold"}
    assert provider.requests[0].json() == {"inputs": "x", "seed": 7}


def test_processors_that_are_wrong_are_refused_before_the_provider_is_called(sidecar: Sidecar) -> None:
    with background_provider(json_response({})) as provider:
        model_id = sidecar.create_model(connector(provider.url))
        assert "output_processors[0].type" in reason(ask(sidecar, model_id, inputs="x", output_processors=[{}]))
    assert provider.requests == []


def test_structured_output_is_put_into_the_body(sidecar: Sidecar) -> None:
    with background_provider(json_response({})) as provider:
        model_id = sidecar.create_model(connector(provider.url, supports_structured_output=True))
        schema = {"type": "json_schema", "json_schema": {"name": "n"}}
        assert ask(sidecar, model_id, inputs="x", _response_format_json=json.dumps(schema)).status_code == 200
    assert provider.requests[0].json() == {"inputs": "x", "response_format": schema}


def test_an_input_that_breaks_the_interface_never_reaches_the_provider(sidecar: Sidecar) -> None:
    parameters = {"type": "object", "properties": {"inputs": {"type": "string"}}, "required": ["inputs"]}
    schema = {"type": "object", "properties": {"parameters": parameters}}
    with background_provider(json_response({"ok": 1})) as provider:
        model_id = sidecar.create_model(connector(provider.url), interface={"input": schema})
        message = reason(ask(sidecar, model_id, prompt="x"))
        assert provider.requests == []
        assert data_as_map(ask(sidecar, model_id, inputs="x")) == {"ok": 1}
    assert message.startswith(
        "Error validating input schema, if you think this is expected, please update your 'input'"
    )
    assert "$.parameters: required property 'inputs' not found" in message


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"properties": {"text_docs": {"maxItems": 1}}}, "$.text_docs: breaks the rule maxItems 1"),
        ({"properties": {"parameters": {"required": ["input"]}}, "required": ["parameters"]}, None),
        ({"properties": {"parameters": {"required": ["other"]}}, "required": ["parameters"]}, "'parameters' not found"),
    ],
)
def test_an_interface_may_speak_of_texts_or_of_the_parameters_that_they_become(
    sidecar: Sidecar, schema: dict[str, Any], words: str | None
) -> None:
    with background_provider(vectors_of) as provider:
        model_id = sidecar.create_model(
            blueprint_connector("openai-embedding", provider.url), interface={"input": schema}
        )
        response = predict(sidecar, model_id, {"text_docs": ["a", "b"]})
    if words is None:
        assert len(outputs(response)[0]) == 2
    else:
        assert words in reason(response)
        assert provider.requests == []


def test_an_output_that_breaks_the_interface_is_refused(sidecar: Sidecar) -> None:
    schema = {"properties": {"inference_results": {"type": "array", "maxItems": 0}}}
    with background_provider(json_response({"ok": 1})) as provider:
        model_id = sidecar.create_model(connector(provider.url), interface={"output": schema})
        assert "Error validating output schema" in reason(ask(sidecar, model_id, inputs="x"))


@pytest.mark.parametrize(("status", "expected"), [(400, 400), (401, 424), (429, 429)])
def test_a_provider_that_refuses_gives_a_status_and_its_own_words(sidecar: Sidecar, status: int, expected: int) -> None:
    refusal = json_response({"error": f"no {SECRET} today"}, status, retry_after="7")
    with background_provider(refusal) as provider:
        response = ask(sidecar, sidecar.create_model(connector(provider.url)), inputs="x")
    assert "today" in reason(response, expected)
    assert response.json()["error"]["provider_status"] == status
    assert response.headers["retry-after"] == "7"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ([head(content_length="0")], "Remote service returned empty response body"),
        ([head(500, content_length="0")], "Remote service returned error status 500 with empty body"),
        ([head(content_length="5") + b"<html"], "The provider's response is not JSON"),
        ([Act.RESET], "closed the connection before it responded"),
        ([head(content_length="9") + b"{", Act.RESET], "closed the connection in the middle of its response"),
    ],
)
def test_a_response_that_is_not_json_is_the_providers_fault(sidecar: Sidecar, script: Script, words: str) -> None:
    with background_provider(script) as provider:
        response = ask(sidecar, sidecar.create_model(connector(provider.url)), inputs="x")
    assert words in reason(response, 424)


def test_painless_on_the_embedded_store_is_refused_before_the_provider_is_called(sidecar: Sidecar) -> None:
    with background_provider(json_response({})) as provider:
        model_id = sidecar.create_model(connector(provider.url, pre_process_function="return '{}';"))
        message = reason(predict(sidecar, model_id, {"text_docs": ["x"]}))
    assert message.startswith("Painless scripts are run by OpenSearch: the embedded store cannot.")
    assert provider.requests == []
