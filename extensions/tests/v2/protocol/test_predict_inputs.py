"""Tensors to predict parameters: by the templates of all shipped connectors, and by small ones."""

import json
from math import prod
from pathlib import Path
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.predict.inputs import RemoteInput, TextDocsInput, TextSimilarityInput
from opensearch_ml_stream.connectors.predict.model_inputs import find_model_inputs
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText
from opensearch_ml_stream.extensions.v2.protocol.messages import Tensor
from opensearch_ml_stream.extensions.v2.protocol.predict_inputs import (
    MAX_PARAMETERS,
    MAX_PREDICTIONS,
    PredictInputs,
)
from opensearch_ml_stream.extensions.v2.protocol.tensor_parameters import MAX_ROWS
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


@pytest.mark.parametrize("name", ["inputs", "passages", "stop", "documents"])
@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        (["a"], ["a"]),
        (["a", "b"], ["a", "b"]),
        (["a", '{"text": "b"}'], ["a", {"text": "b"}]),
        (['["a", "b"]'], ["a", "b"]),
        (["[oops"], ["[oops"]),
        (["2024", "null"], ["2024", "null"]),
    ],
)
def test_a_place_without_quotes_takes_all_texts_as_an_array(name: str, elements: list[str], expected: Any) -> None:
    target = action(f'{{"a": ${{parameters.{name}}}}}')
    assert rendered(target, text(*elements, name=name)) == {"a": expected}


@pytest.mark.parametrize(
    ("name", "element", "expected"),
    [
        ("inputs", "2024", ["2024"]),
        ("documents", "2024", ["2024"]),
        ("tools", '{"type": "function"}', [{"type": "function"}]),
        ("response_format", '{"type": "json_object"}', {"type": "json_object"}),
        ("max_tokens", "64", 64),
        ("passage", '"a"', "a"),
    ],
)
def test_an_only_text_there_may_be_another_json_where_no_texts_are_meant(
    name: str, element: str, expected: Any
) -> None:
    target = action(f'{{"a": ${{parameters.{name}}}}}')
    assert rendered(target, text(element, name=name)) == {"a": expected}


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ([], 1), ([1, 1], 1), ([2], [1, 2]), ([2, 1], [1, 2]), ([1, 2], [[1, 2]]),
        ([2, 2, 1], [[1, 2], [3, 4]]), ([2, 1, 2], [[[1, 2]], [[3, 4]]]),
    ],
)  # fmt: skip
def test_numbers_are_nested_there_by_their_rows(shape: list[int], expected: Any) -> None:
    tensor = Tensor("n", "INT64", shape, list(range(1, prod(shape) + 1)))
    assert rendered(action('{"a": ${parameters.n}}'), tensor) == {"a": expected}


def test_numbers_have_no_more_rows_than_may_be_nested() -> None:
    tensor = Tensor("n", "INT8", [MAX_ROWS + 1, 2], [0] * (2 * MAX_ROWS + 2))
    assert f"n has more than {MAX_ROWS} rows" in refused(action('{"a": ${parameters.n}}'), tensor)


def test_a_place_in_quotes_has_one_element_in_each_prediction() -> None:
    target = action('{"a": "${parameters.left}", "b": "${parameters.right:-}", "c": ${parameters.n:-null}}')
    one, two, numbers = text("x", name="left"), text("1", '["y"]', name="right"), Tensor("right", "FP32", [2], [1, 2.5])
    fixed = Tensor("n", "INT32", [2], [7, 8])
    assert [
        orjson.loads(target.render(given.parameters).body)
        for tensors in ([one, two], [one, numbers], [text("x", "y", name="left"), two, fixed])
        for given in read(target, *tensors).inputs
    ] == [
        {"a": "x", "b": "1"}, {"a": "x", "b": '["y"]'},
        {"a": "x", "b": "1"}, {"a": "x", "b": "2.5"},
        {"a": "x", "b": "1", "c": [7, 8]}, {"a": "y", "b": '["y"]', "c": [7, 8]},
    ]  # fmt: skip
    assert "left has 3 elements and tensor right has 2" in refused(target, text("x", "y", "z", name="left"), two)
    assert "1000 are possible" in refused(target, Tensor("left", "INT8", [1001], [0] * 1001))


def test_a_value_of_the_connector_passes_its_own_place_on() -> None:
    target = action(
        '{"a": ${parameters.json}, "b": "${parameters.text}"}',
        json='{"c": ${parameters.x}, "d": "${parameters.y}"}',
        text="<${parameters.y}>",
    )
    found = read(target, text("1", "a", name="x"), text("p", "q", name="y")).inputs
    assert [orjson.loads(target.render(one.parameters).body) for one in found] == [
        {"a": {"c": ["1", "a"], "d": "p"}, "b": "<p>"},
        {"a": {"c": ["1", "a"], "d": "q"}, "b": "<q>"},
    ]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("openai.embedding", "input"),
        ("cohere.embedding", "texts"),
        ("bedrock.embedding", "inputText"),
        ("bedrock.nova.embedding", "text"),
        ("bedrock.multimodal_embedding", "text"),
    ],
)
def test_what_the_function_makes_of_texts_is_their_name_too(function: str, name: str) -> None:
    target = action(f'{{"a": ${{parameters.{name}}}}}', function=f"connector.pre_process.{function}")
    for texts in (("[1]",), ("a", "b")):
        assert read(target, text(*texts, name=name)).inputs == [TextDocsInput(texts, {})]


@pytest.mark.parametrize("name", ["input", "text", "x"])
@pytest.mark.parametrize("body", ['{"input": "${parameters.input}"}', '{"input": ["${parameters.input}"]}'])
def test_input_in_quotes_takes_a_text_in_each_prediction_by_any_name(name: str, body: str) -> None:
    target = action(body)
    bodies = [
        orjson.loads(target.render(one.parameters).body) for one in read(target, text("a", "b", name=name)).inputs
    ]
    assert [str(body["input"]).strip("[']") for body in bodies] == ["a", "b"]


def test_texts_for_a_function_are_one_for_each_value_of_another_tensor() -> None:
    target = action(
        '{"input": ${parameters.input}, "user": "${parameters.user}"}',
        function="connector.pre_process.openai.embedding",
    )
    assert read(target, text("a", "b"), text("u", name="user")).inputs == [TextDocsInput(("a", "b"), {"user": "u"})]
    assert read(target, text("a", "b"), text("u", "v", name="user")).inputs == [
        TextDocsInput(("a",), {"user": "u"}),
        TextDocsInput(("b",), {"user": "v"}),
    ]


def test_a_text_and_its_image_are_tensors_of_their_own() -> None:
    target = action(
        '{"t": "${parameters.inputText:-null}", "i": "${parameters.inputImage:-null}"}',
        function="connector.pre_process.bedrock.multimodal_embedding",
    )
    found = read(target, text("a", "b", name="inputText"), text("x", "y", name="inputImage")).inputs
    assert [one.parameters for one in found] == [
        {"inputText": "a", "inputImage": "x"},
        {"inputText": "b", "inputImage": "y"},
    ]


def test_a_query_and_documents_go_to_the_function_that_ranks_them() -> None:
    target = action(
        '{"query": "${parameters.query}", "documents": ${parameters.documents}, "top_n": ${parameters.top_n}}',
        function="connector.pre_process.cohere.rerank",
    )
    query = text("q", name="query")
    for documents in (("a",), ("a", '{"b": 1}')):
        assert read(target, text(*documents, name="documents"), query).inputs == [
            TextSimilarityInput("q", documents, {})
        ]
    top = Tensor("top_n", "INT32", [1], [1])
    assert read(target, query, text("a", name="documents"), top).inputs == [
        TextSimilarityInput("q", ("a",), {"top_n": JsonText("1")})
    ]
    assert read(target, text("q", "r", name="query"), text("a", "b", name="documents")).inputs == [
        TextSimilarityInput("q", ("a", "b"), {}),
        TextSimilarityInput("r", ("a", "b"), {}),
    ]
    long = text("a" * 1_000_000, name="documents")
    assert "too long, for each of 40 texts" in refused(target, text(*["q"] * 40, name="query"), long)
    assert "no text" in refused(target, query, text(name="documents"))
    assert "named query and documents" in refused(target, text("a"))


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
