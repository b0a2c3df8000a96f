"""Whole responses and errors of V2, in both dialects."""

import json

import orjson
import pytest

from opensearch_ml_stream.connectors.errors import NotFound
from opensearch_ml_stream.extensions.v2.protocol.json_requests import Dialect
from opensearch_ml_stream.extensions.v2.protocol.json_responses import STRING, response_body
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceResponse, ResponseShape, Tensor
from opensearch_ml_stream.rest_handlers.http.responses import plain_error_body

SHAPE = ResponseShape("m", "1", "7")
TEXT = InferenceResponse(SHAPE, [Tensor("output", "BYTES", [1, 1], ["Hi"], STRING)], {"finish_reason": "stop"})
VECTORS = InferenceResponse(SHAPE, [Tensor("output", "FP32", [1, 2], [0.5, 1.0])])


def test_a_response_of_mlserver() -> None:
    assert orjson.loads(response_body(TEXT, Dialect.TENSORS, {"x": "y"})) == {
        "model_name": "m",
        "model_version": "1",
        "id": "7",
        "parameters": {"headers": {"x": "y"}, "finish_reason": "stop"},
        "outputs": [
            {
                "name": "output",
                "shape": [1, 1],
                "datatype": "BYTES",
                "parameters": {"content_type": "str"},
                "data": ["Hi"],
            }
        ],
    }


def test_a_response_of_the_generate_extension() -> None:
    ending = {"finish_reason": "stop"}
    assert orjson.loads(response_body(TEXT, Dialect.TEXT)) == {
        "model_name": "m", "model_version": "1", "text_output": "Hi", "id": "7", "details": ending,
        "parameters": ending,
    }  # fmt: skip


def test_several_texts_are_an_array_and_further_tensors_stand_beside_them() -> None:
    tensors = [Tensor("output", "BYTES", [2], ["a", "b"]), Tensor("reasoning", "BYTES", [1], ["Hm"])]
    body = orjson.loads(response_body(InferenceResponse(SHAPE, tensors), Dialect.TEXT))
    assert (body["text_output"], body["reasoning"]) == (["a", "b"], ["Hm"])


def test_numbers_are_tensors_in_the_generate_extension_too() -> None:
    body = orjson.loads(response_body(VECTORS, Dialect.TEXT))
    assert "text_output" not in body
    assert body["outputs"] == [{"name": "output", "shape": [1, 2], "datatype": "FP32", "data": [0.5, 1.0]}]


def test_elements_that_are_no_text_are_written_in_base64_and_the_content_type_says_so() -> None:
    response = InferenceResponse(SHAPE, [Tensor("output", "BYTES", [2], [b"\xff", "a"], STRING)])
    (tensor,) = orjson.loads(response_body(response, Dialect.TENSORS))["outputs"]
    assert (tensor["data"], tensor["parameters"]) == (["/w==", "YQ=="], {"content_type": "base64"})


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_model_without_a_version_has_none_in_its_responses(dialect: Dialect) -> None:
    response = InferenceResponse(ResponseShape("m", None, "7"), TEXT.outputs)
    assert "model_version" not in orjson.loads(response_body(response, dialect))


def test_an_error_is_one_string() -> None:
    assert plain_error_body(NotFound("Model m not found")) == b'{"error":"Model m not found"}'


def test_what_a_script_returns_is_always_valid_json() -> None:
    response = InferenceResponse(SHAPE, [Tensor("output", "BYTES", [1], ["\ud83d"])], {"n": 10**30})
    body = json.loads(response_body(response, Dialect.TENSORS))
    assert (body["outputs"][0]["data"], body["parameters"]) == (["\ud83d"], {"n": 10**30})
