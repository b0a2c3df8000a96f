"""The types: what they take, hold and become, and what they say of what they do not take."""

import copy
import pickle
from typing import Any

import pytest

from opensearch_ml_stream.runtimes.interface.types import (
    Datatype,
    InferenceRequest,
    InferenceResponse,
    MetadataTensor,
    Parameters,
    RepositoryIndexResponse,
    RequestInput,
    RequestOutput,
    ResponseOutput,
    TensorData,
    ValidationError,
)

TENSOR: dict[str, Any] = {"name": "x", "shape": [2], "datatype": "BYTES", "data": ["a", "b"]}


def test_nested_dictionaries_become_types() -> None:
    request = InferenceRequest(inputs=[{**TENSOR, "parameters": {"content_type": "str"}}], parameters={"k": 1})
    assert type(request.inputs[0]) is RequestInput
    assert request.inputs[0].parameters == Parameters(content_type="str")
    assert request.inputs[0].data.root == ["a", "b"]
    assert request.parameters is not None
    assert request.parameters.model_extra == {"k": 1}


def test_what_is_a_type_already_stays_the_same_object() -> None:
    parameters, data = Parameters(), TensorData(["a"])
    output = ResponseOutput(name="x", shape=[1], datatype=Datatype.BYTES, data=data, parameters=parameters)
    assert output.parameters is parameters
    assert output.data is data
    assert InferenceResponse(model_name="m", outputs=[output]).outputs[0] is output


def test_null_is_as_good_as_nothing() -> None:
    given = InferenceRequest(inputs=[], id=None, parameters=None, outputs=None)
    assert given == InferenceRequest(inputs=[])
    assert given.model_dump() == {"inputs": []}
    assert given.model_fields_set == {"id", "inputs", "parameters", "outputs"}


def test_values_are_brought_into_the_fields_types() -> None:
    tensor = MetadataTensor(name=b"x", shape=("1", 2.0, True), datatype=Datatype.FP32)
    assert (tensor.name, tensor.shape, tensor.datatype) == ("x", [1, 2, 1], "FP32")


def test_data_may_be_anything_and_a_list_is_copied() -> None:
    values = [1, 2]
    data = TensorData(values)
    values.append(3)
    assert (list(data), len(data), data[1]) == ([1, 2], 2, 2)
    assert TensorData(root={"a": 1}).model_dump() == {"a": 1}
    assert TensorData.model_validate(None).root is None


def test_all_that_is_wrong_is_said_and_where() -> None:
    with pytest.raises(ValidationError) as caught:
        InferenceRequest(id=3, inputs=[TENSOR, {**TENSOR, "shape": [1, "x"], "datatype": "TEXT"}, 7], outputs=[{}])
    problems = {".".join(map(str, problem["loc"])): problem["type"] for problem in caught.value.errors()}
    assert problems == {
        "id": "string_type",
        "inputs.1.shape.1": "int_parsing",
        "inputs.1.datatype": "enum",
        "inputs.2": "model_type",
        "outputs.0.name": "missing",
    }
    assert caught.value.error_count() == 5
    assert str(caught.value).startswith(
        "5 validation errors for InferenceRequest\nid\n  Input should be a valid string"
    )
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (None, "Input should be a valid list"),
        ("12", "Input should be a valid list"),
        ({"a": 1}, "Input should be a valid list"),
        ([1.5], "got a number with a fractional part"),
        ([float("inf")], "Input should be a finite number"),
        ([None], "Input should be a valid integer"),
    ],
)
def test_a_shape_is_a_list_of_whole_numbers(shape: object, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ResponseOutput(**{**TENSOR, "shape": shape})


def test_a_request_cannot_pass_for_another_type() -> None:
    with pytest.raises(ValidationError, match="instance of ResponseOutput"):
        InferenceResponse(model_name="m", outputs=[RequestInput(**TENSOR)])
    with pytest.raises(ValidationError, match="instance of InferenceRequest"):
        InferenceRequest.model_validate([])


def test_other_parameters_are_attributes_and_come_out_again() -> None:
    parameters = Parameters(temperature=0.5, copy=True, model_fields=1, keeps_others=0, _x=2)
    parameters.top_p = 1
    assert (parameters.temperature, parameters.top_p) == (0.5, 1)
    expected = {"temperature": 0.5, "copy": True, "model_fields": 1, "keeps_others": 0, "_x": 2, "top_p": 1}
    assert RequestOutput(name="x", parameters=parameters).model_dump() == {"name": "x", "parameters": expected}
    assert not hasattr(parameters, "other")


def test_what_a_codec_decoded_comes_from_no_request_and_goes_into_no_json() -> None:
    parameters = Parameters(**{"_decoded_payload": "of the request"})
    assert not hasattr(parameters, "_decoded_payload")
    parameters._decoded_payload = object()
    assert Parameters.model_dump(parameters) == {"_decoded_payload": "of the request"}


def test_fields_that_a_type_does_not_have_are_dropped_when_given_and_refused_when_assigned() -> None:
    output = RequestOutput(name="x", other=1)
    assert output.model_dump() == {"name": "x"}
    with pytest.raises(ValueError, match='"RequestOutput" object has no field "other"'):
        output.other = 1


def test_dumps_have_the_order_of_the_fields_and_what_was_assigned() -> None:
    response = InferenceResponse(outputs=[], model_name="m")
    response.id = "1"
    assert list(response.model_dump()) == ["model_name", "id", "outputs"]
    assert list(response.dict()) == ["model_name", "model_version", "id", "parameters", "outputs"]
    assert response.model_dump_json() == '{"model_name":"m","id":"1","outputs":[]}'
    assert response.model_dump_json(indent=1).startswith('{\n "model_name"')
    assert response.model_dump(exclude_unset=False, exclude_none=True) == response.model_dump()
    assert response.model_dump(exclude={"id"}) == {"model_name": "m", "outputs": []}
    assert response.model_dump(include={"id"}) == {"id": "1"}


def test_dumps_in_the_mode_of_json_hold_what_json_holds() -> None:
    output = ResponseOutput(**{**TENSOR, "data": (b"a", Datatype.BOOL)})
    assert output.model_dump()["data"] == (b"a", Datatype.BOOL)
    assert output.model_dump(mode="json")["data"] == ["a", "BOOL"]


def test_json_is_read_as_it_is_written() -> None:
    request = InferenceRequest(id="1", inputs=[TENSOR], outputs=[{"name": "y"}])
    assert InferenceRequest.model_validate_json(request.model_dump_json()) == request
    assert InferenceRequest.parse_raw(request.json().encode()) == request
    with pytest.raises(ValidationError, match="Invalid JSON"):
        InferenceRequest.model_validate_json("[}")


def test_copies_are_equal_and_of_their_own() -> None:
    request = InferenceRequest(inputs=[TENSOR], parameters={"k": [1]})
    for copied in (copy.deepcopy(request), pickle.loads(pickle.dumps(request)), request.model_copy(deep=True)):
        assert copied == request
        assert copied.inputs[0] is not request.inputs[0]
    assert request.copy(update={"id": "2"}).id == "2"
    assert request.id is None
    assert request != InferenceRequest(inputs=[TENSOR], parameters={"k": [2]})
    assert RequestOutput(name="x") != MetadataTensor(name="x", shape=[], datatype="BOOL")


def test_records_show_their_fields() -> None:
    assert repr(Parameters(k=1)) == "Parameters(content_type=None, headers=None, k=1)"
    assert str(RequestOutput(name="x")) == "name='x' parameters=None"
    assert dict(RequestOutput(name="x")) == {"name": "x", "parameters": None}


def test_a_list_of_records_is_a_list() -> None:
    index = RepositoryIndexResponse([{"name": "a", "state": "READY", "reason": ""}])
    assert [item.state for item in index] == ["READY"]
    assert index.model_dump() == [{"name": "a", "version": None, "state": "READY", "reason": ""}]
    with pytest.raises(ValidationError, match="'UNLOADING'"):
        RepositoryIndexResponse([{"name": "a", "state": "GONE", "reason": ""}])


def test_a_subclass_has_the_fields_of_both() -> None:
    class Traced(InferenceRequest):
        trace: str = "none"
        sizes: dict[str, int] | None = None

    traced = Traced(inputs=[TENSOR], sizes={"a": 1})
    assert (traced.trace, traced.sizes, traced.inputs[0].name) == ("none", {"a": 1}, "x")
    assert InferenceRequest.model_validate(traced) is traced
