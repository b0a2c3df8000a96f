"""Whole predictions to the tensors of a response: texts, embeddings, a V2 provider's own, any other JSON."""

from typing import Any

import orjson
import pytest

from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceResponse, ResponseShape, Tensor
from opensearch_ml_stream.extensions.v2.protocol.predict_outputs import inference_response

SHAPE = ResponseShape("m", "1", "7")
CHAT = ResponseShape("m", "1", "7", "content", is_chat=True)
STR = {"content_type": "str"}


def completion(text: str, reason: str = "stop", **message: Any) -> dict[str, Any]:
    return {
        "choices": [{"message": {"role": "assistant", "content": text, **message}, "finish_reason": reason}],
        "usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5},
        "model": "gpt",
    }


def prediction(*bodies: Any) -> dict[str, Any]:
    """One prediction whose provider calls had these responses."""
    results = [{"output": [{"name": "response", "dataAsMap": body}], "status_code": 200} for body in bodies]
    return {"inference_results": results}


def embeddings(*tensors: dict[str, Any]) -> dict[str, Any]:
    named = [{"name": "sentence_embedding", **tensor} for tensor in tensors]
    return {"inference_results": [{"output": named, "status_code": 200}]}


def vector(*data: float, data_type: str = "FLOAT32") -> dict[str, Any]:
    return {"data_type": data_type, "shape": [len(data)], "data": list(data)}


def respond(*predictions: dict[str, Any], shape: ResponseShape = SHAPE) -> InferenceResponse:
    return inference_response(shape, predictions)


def test_a_text_is_one_tensor_with_its_finish_reason_and_usage() -> None:
    usage = {"input_tokens": 2, "output_tokens": 3, "total_tokens": 5}
    assert respond(prediction(completion("Hi"))) == InferenceResponse(
        SHAPE,
        [Tensor("output", "BYTES", [1, 1], ["Hi"], STR)],
        {"finish_reason": "stop", "native_finish_reason": "stop", "usage": usage, "model": "gpt"},
    )


def test_the_response_to_a_chat_is_a_message() -> None:
    response = respond(prediction(completion("Hi")), shape=CHAT)
    assert [(tensor.name, tensor.data) for tensor in response.outputs] == [
        ("role", ["assistant"]), ("content", ["Hi"]), ("type", ["text"]),
    ]  # fmt: skip


def test_a_filtered_text_is_a_text_without_a_reason() -> None:
    response = respond(prediction({"response": "Hi"}))
    assert (response.outputs[0].data, response.parameters) == (["Hi"], {})


def test_the_warnings_of_all_predictions_are_among_the_parameters_each_once() -> None:
    filtered = prediction({"response": "Hi"})
    response = respond({**filtered, "warnings": ["a", "b"]}, filtered, {**filtered, "warnings": ["b"]})
    assert response.parameters == {"warnings": ["a", "b"]}


def test_several_texts_are_one_tensor_in_order_with_the_usage_of_all() -> None:
    response = respond(
        prediction(completion("a")),
        prediction(completion("b", "length", reasoning_content="Hm")),
        prediction({"response": "c"}),
    )
    assert response.outputs == [
        Tensor("output", "BYTES", [3, 1], ["a", "b", "c"], STR),
        Tensor("reasoning", "BYTES", [3, 1], ["", "Hm", ""], STR),
    ]
    assert response.parameters["finish_reason"] == "length"
    assert response.parameters["usage"] == {"input_tokens": 4, "output_tokens": 6, "total_tokens": 10}


def test_tool_calls_are_a_tensor_of_json() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    called = prediction(completion("", "tool_calls", tool_calls=[call]))
    expected = {"index": 0, "id": "c1", "name": "f", "arguments": "{}"}
    (_, calls) = respond(called).outputs
    assert (calls.name, calls.shape, [orjson.loads(one) for one in calls.data]) == ("tool_calls", [1, 1], [expected])
    (_, columns) = respond(called, prediction(completion("a"))).outputs
    assert [columns.shape, orjson.loads(columns.data[0]), columns.data[1]] == [[2, 1], [expected], ""]


def test_embeddings_are_one_tensor_of_floats() -> None:
    both = [embeddings(vector(0.5, 1.0), vector(0.25, 2.0)), embeddings(vector(1.0, 1.0))]
    assert respond(*both).outputs == [Tensor("output", "FP32", [3, 2], [0.5, 1.0, 0.25, 2.0, 1.0, 1.0])]
    assert respond(embeddings(vector(1, data_type="INT8"))).outputs[0].datatype == "INT8"


@pytest.mark.parametrize(
    "unlike",
    [
        embeddings(vector(0.5, 1.0), vector(0.5)),
        embeddings(vector(0.5), vector(1, data_type="INT8")),
        embeddings(vector(1, data_type="UBINARY")),
        embeddings({**vector(1.0), "shape": [1, 1]}),
        embeddings({"data_type": "FLOAT32", "shape": [1]}),
    ],
)
def test_embeddings_that_are_not_alike_are_json(unlike: dict[str, Any]) -> None:
    (tensor,) = respond(unlike).outputs
    assert tensor.parameters == {"content_type": "json"}
    assert [orjson.loads(text) for text in tensor.data] == unlike["inference_results"][0]["output"]


def test_any_other_json_is_a_tensor_of_its_text() -> None:
    body = {"labels": ["a"], "scores": [0.5]}
    (tensor,) = respond(prediction(body)).outputs
    assert (tensor.name, tensor.datatype, tensor.shape) == ("output", "BYTES", [1, 1])
    assert (orjson.loads(tensor.data[0]), tensor.parameters) == (body, {"content_type": "json"})
    assert respond(prediction({"response": [1]})).outputs[0].data == ["[1]"]
    assert respond(prediction({"response": "a"}), prediction(body)).outputs[0].data[0] == '"a"'
    assert respond({"inference_results": []}).outputs[0].data == []


def test_the_tensors_of_a_provider_that_speaks_v2_stay_as_they_are() -> None:
    own = {
        "model_name": "sum", "id": "x", "parameters": {"headers": {"a": "b"}, "n": 1},
        "outputs": [{"name": "total", "shape": [2], "datatype": "FP64", "data": [1.5, 2.5]}],
    }  # fmt: skip
    assert respond(prediction(own)) == InferenceResponse(SHAPE, [Tensor("total", "FP64", [2], [1.5, 2.5])], {"n": 1})


@pytest.mark.parametrize(
    "outputs", [5, [{"text": "a"}], [{"name": "a", "shape": [2], "datatype": "INT8", "data": [1]}]]
)
def test_what_only_looks_like_tensors_is_json(outputs: object) -> None:
    assert respond(prediction({"outputs": outputs})).outputs[0].parameters in ({"content_type": "json"}, STR)


def test_a_fallback_model_that_answered_is_named() -> None:
    answered = {**prediction(completion("Hi")), "model_id": "other"}
    assert respond(answered).parameters["model_id"] == "other"
