"""Tensors to predict parameters: by the templates of all shipped connectors, and by small ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.predict.inputs import RemoteInput, TextDocsInput
from opensearch_ml_stream.connectors.predict.model_inputs import find_model_inputs
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText
from opensearch_ml_stream.extensions.v2.protocol.messages import Tensor
from opensearch_ml_stream.extensions.v2.protocol.predict_inputs import (
    MAX_PARAMETERS,
    MAX_PREDICTIONS,
    PredictInputs,
)
from tests.v2.protocol.predict_input_setup import (
    BLUEPRINTS,
    MESSAGES,
    PROMPT,
    QUESTION,
    action,
    compiled,
    read,
    refused,
    rendered,
    text,
)

_OF_TEXTS = [path for path in BLUEPRINTS if path.stem != "cohere-rerank"]  # which ranks documents by a query


@pytest.mark.parametrize("path", _OF_TEXTS, ids=lambda path: path.stem)
def test_every_shipped_connector_takes_a_text_in_a_tensor_of_any_name(path: Path) -> None:
    target = compiled(json.loads(path.read_text())["connector"])
    for name in ("prompt", "input-0"):
        (one,) = read(target, text(QUESTION, name=name)).inputs
        if isinstance(one, TextDocsInput):
            assert one.text_docs == (QUESTION,)
        else:
            body = json.loads(target.render(one.parameters).body)
            assert json.dumps(QUESTION)[1:-1] in json.dumps(body)


@pytest.mark.parametrize("name", ["inputs", "prompt", "question"])
def test_the_prompt_is_the_first_parameter_of_a_known_name_that_the_template_leaves_open(name: str) -> None:
    target = action(f'{{"a": "${{parameters.{name}}}"}}', inputs_of_another="x", prompt_="y")
    assert rendered(target, text("Hi")) == {"a": "Hi"}
    both = action('{"a": "${parameters.inputs}", "b": "${parameters.question:-}"}')
    assert rendered(both, text("Hi")) == {"a": "Hi", "b": ""}


def test_a_prompt_that_the_connector_sets_is_kept() -> None:
    target = action('{"a": "${parameters.prompt}", "b": "${parameters.question}"}', prompt="fixed")
    assert rendered(target, text("Hi")) == {"a": "fixed", "b": "Hi"}
    around = action('{"a": "${parameters.prompt}"}', prompt="<s>${parameters.inputs}</s>")
    assert rendered(around, text("Hi", name="prompt")) == {"a": "<s>Hi</s>"}


def test_the_models_settings_may_name_another_parameter() -> None:
    target = action('{"a": "${parameters.my_param}", "b": "${parameters.inputs:-}"}')
    assert rendered(target, text("Hi"), prompt="my_param") == {"a": "Hi", "b": ""}
    assert "_sidecar.v2.prompt" in refused(action('{"a": "${parameters.my_param}"}'), text("Hi"))


def test_a_prompt_may_stand_in_the_url() -> None:
    target = action("{}", url="http://127.0.0.1/?q=${parameters.question}")
    (one,) = read(target, text("a b")).inputs
    assert target.render(one.parameters).url == "http://127.0.0.1/?q=a%20b"


def test_texts_go_to_the_function_of_a_connector_for_embeddings() -> None:
    target = action('{"input": ${parameters.input}}', function="connector.pre_process.openai.embedding")
    assert read(target, text("a", "b"), max_tokens=5) == PredictInputs(
        [TextDocsInput(("a", "b"), {"max_tokens": JsonText("5")})]
    )


def test_several_texts_are_a_prediction_each() -> None:
    assert read(PROMPT, text("a", "b"), n=2).inputs == [
        RemoteInput({"n": JsonText("2"), "inputs": "a"}),
        RemoteInput({"n": JsonText("2"), "inputs": "b"}),
    ]
    assert len(read(MESSAGES, text("a", "b")).inputs) == 2
    assert "1000 are possible" in refused(PROMPT, text(*["a"] * (MAX_PREDICTIONS + 1)))
    assert "no text" in refused(PROMPT, text())


def test_llm_parameters_count_before_parameters_and_what_is_of_the_request_is_left_out() -> None:
    given: dict[str, Any] = {
        "n": 1,
        "temperature": None,
        "headers": {"a": "b"},
        "content_type": "str",
        "stream": True,
        "stop": ["x"],
    }
    for own in ({"n": 2, "top_p": None}, '{"n": 2}'):
        (one,) = read(PROMPT, text("Hi"), **given, llm_parameters=own).inputs
        assert one.parameters == {"n": JsonText("2"), "stop": JsonText('["x"]'), "inputs": "Hi"}
    assert "llm_parameters" in refused(PROMPT, text("Hi"), llm_parameters=[1])
    assert "llm_parameters" in refused(PROMPT, text("Hi"), llm_parameters="{")


def test_the_headers_of_the_request_go_where_the_template_has_a_place_for_them() -> None:
    target = action('{"a": "${parameters.inputs}", "headers": ${parameters.headers:-null}}')
    given: dict[str, Any] = {"headers": {"x-foo": "1"}, "llm_parameters": {"headers": {"x-foo": "2"}}}
    assert rendered(target, text("Hi"), **given) == {"a": "Hi", "headers": {"x-foo": "1"}}
    fixed = action('{"a": "${parameters.inputs}", "headers": ${parameters.headers}}', headers={})
    assert rendered(fixed, text("Hi"), **given) == {"a": "Hi", "headers": {}}


def test_parameters_are_bounded_and_more_so_where_each_of_several_texts_has_them() -> None:
    many: dict[str, Any] = {f"p{number}": number for number in range(MAX_PARAMETERS + 1)}
    assert "10000 parameters" in refused(PROMPT, text("a"), **many)
    few = dict(list(many.items())[:200])
    assert len(read(PROMPT, text(*["a"] * 500), **few).inputs) == 500
    assert "each of 501 texts" in refused(PROMPT, text(*["a"] * 501), **few)
    assert "each of 1000 texts" in refused(PROMPT, text(*["a"] * 1000), long="x" * 40_000)
    assert len(read(PROMPT, text("a"), long="x" * 40_000_000).inputs) == 1


def test_tensors_named_as_parameters_of_the_template_fill_these() -> None:
    target = action('{"query": "${parameters.query}", "documents": ${parameters.documents}, "n": ${parameters.n}}', n=1)
    one = Tensor("n", "INT32", [1], [5])
    assert rendered(target, text("q", name="query"), text("a", "b", name="documents"), one) == {
        "query": "q", "documents": ["a", "b"], "n": 5,
    }  # fmt: skip
    many = Tensor("n", "FP32", [2], [0.5, 1.0])
    assert rendered(target, text("q", name="query"), text("a", name="documents"), many) == {
        "query": "q", "documents": ["a"], "n": [0.5, 1.0],
    }  # fmt: skip


def test_the_tensor_stream_of_tritons_clients_is_left_out() -> None:
    assert rendered(PROMPT, text("Hi"), Tensor("stream", "BOOL", [1], [True])) == {"prompt": "Hi", "n": 1}


def test_numbers_go_as_json_where_the_template_has_a_place_for_tensors() -> None:
    target = action('{"inputs": ${parameters.tensors}}')
    tensors = [Tensor("a", "FP32", (1, 2), [0.5, 1.0]), text("Hi", name="b", content_type="str")]
    assert rendered(target, *tensors) == {
        "inputs": [
            {"name": "a", "datatype": "FP32", "shape": [1, 2], "data": [0.5, 1.0]},
            {"name": "b", "datatype": "BYTES", "shape": [1], "parameters": {"content_type": "str"}, "data": ["Hi"]},
        ]
    }


def test_what_the_model_cannot_take_is_refused_with_what_it_takes() -> None:
    reason = refused(PROMPT, Tensor("a", "FP32", [1], [0.5]))
    assert "tensor a (FP32)" in reason
    assert "a text in a BYTES tensor" in reason
    assert "tensors named n" in reason
    assert "tensor b (BYTES)" in refused(PROMPT, text("Hi", name="a"), text("Hi", name="b"))
    assert "chat" in refused(MESSAGES)
    assert "any tensors" in refused(action("${parameters.tensors}"))
    assert "no tensors" in refused(action("{}"))
    assert "same name" in refused(PROMPT, text("a"), text("b"))
    assert "null" in refused(PROMPT, text(None))


def test_bytes_and_base64_are_read_as_text_where_they_are_text() -> None:
    assert rendered(PROMPT, text("SGk=", content_type="base64"))["prompt"] == "Hi"
    assert rendered(PROMPT, text("/w==", content_type="base64"))["prompt"] == "/w=="
    assert rendered(PROMPT, text("no base64", content_type="base64"))["prompt"] == "no base64"
    assert rendered(PROMPT, text(b"\xff"))["prompt"] == "/w=="


def test_parameters_that_hold_each_other_are_looked_at_once() -> None:
    target = action('"${parameters.a}"', a="${parameters.b}", b="${parameters.a} ${parameters.inputs}")
    assert find_model_inputs(target.action, target.parameters).prompt == "inputs"


def test_no_parameter_of_a_caller_reaches_a_credential_or_another_host() -> None:
    target = action('{"a": "${parameters.inputs}"}', url="http://h/${parameters.path}")
    (one,) = read(target, text("${credential.key}"), path="x?y@evil/").inputs
    request = target.render(one.parameters)
    assert request.url.startswith("http://h/x%3Fy")
    assert "credential.key" in request.body.decode()
