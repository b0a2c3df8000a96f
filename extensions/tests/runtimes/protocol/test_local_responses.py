"""A runtime's whole response: as it is in its own dialect, read for every other form."""

from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.extensions.v2.protocol.json_requests import Dialect
from opensearch_ml_stream.extensions.v2.protocol.local_responses import LocalResponse, find_local_response, read_outputs
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceResponse, ResponseShape, Tensor

SHAPE = ResponseShape("m", "1", "7", is_local=True)
TEXT = {
    "name": "text",
    "shape": [1, 2],
    "datatype": "BYTES",
    "data": [["a", "b"]],
    "parameters": {"content_type": "str"},
}
BODY = {"model_name": "own", "model_version": "v2", "id": "1", "parameters": {"k": [1]}, "outputs": [TEXT]}


def prediction(*bodies: Any, **members: Any) -> dict[str, Any]:
    outputs = [{"name": "response", "dataAsMap": body} for body in bodies]
    return {"inference_results": [{"output": outputs, "status_code": 200}], **members}


def found(body: Any, **members: Any) -> LocalResponse:
    response = find_local_response(SHAPE, prediction(body, **members))
    assert response is not None
    return response


def test_the_runtimes_response_is_sent_as_it_is() -> None:
    assert orjson.loads(found(BODY).encoded(Dialect.TENSORS)) == BODY
    assert found(BODY).shape == ResponseShape("own", "v2", "1", is_local=True)


def test_it_is_read_for_other_forms() -> None:
    tensor = Tensor("text", "BYTES", [1, 2], ["a", "b"], {"content_type": "str"})
    assert found(BODY).read() == InferenceResponse(found(BODY).shape, [tensor], {"k": [1]})
    generated = orjson.loads(found(BODY).encoded(Dialect.TEXT))
    assert (generated["model_name"], generated["text_output"], generated["id"]) == ("own", ["a", "b"], "1")


def test_what_it_does_not_say_is_that_of_the_request() -> None:
    assert found({"outputs": []}).shape == ResponseShape("m", None, "7", is_local=True)
    assert found({"outputs": [], "model_name": 7, "id": None}).shape.id == "7"


def test_its_headers_are_no_parameters() -> None:
    own = found({**BODY, "parameters": {"headers": {"x-a": "b", "x-n": 7}, "k": 1}})
    assert own.headers == {"x-a": "b"}
    assert own.read().parameters == {"k": 1}
    assert orjson.loads(own.encoded(Dialect.TENSORS))["parameters"] == {"k": 1}


@pytest.mark.parametrize("parameters", [None, 7, {"headers": 7}, {"headers": None}])
def test_headers_that_are_none_are_no_headers(parameters: object) -> None:
    assert found({**BODY, "parameters": parameters}).headers == {}


def test_the_model_that_answered_is_named() -> None:
    assert found(BODY, model_id="x").read().parameters == {"k": [1], "model_id": "x"}


@pytest.mark.parametrize("bodies", [({"choices": []},), ({"outputs": {}},), (), (BODY, BODY), ("text",)])
def test_any_other_prediction_has_none(bodies: tuple[Any, ...]) -> None:
    assert find_local_response(SHAPE, prediction(*bodies)) is None


@pytest.mark.parametrize("outputs", [None, [7], [{"name": "a"}], [{**TEXT, "datatype": "X"}], [{**TEXT, "shape": [9]}]])
def test_outputs_that_are_no_tensors_are_the_runtimes_fault(outputs: object) -> None:
    with pytest.raises(UpstreamError, match="The runtime's response is not one of the V2 protocol"):
        read_outputs(outputs)
