"""Bodies of inference requests in both dialects, and what a client is told of a body that is none."""

from math import prod
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.errors import InvalidBody, InvalidRequest, MLStreamError
from opensearch_ml_stream.extensions.v2.protocol.json_requests import Dialect, read_request
from opensearch_ml_stream.extensions.v2.protocol.json_responses import tensor_object
from opensearch_ml_stream.extensions.v2.protocol.messages import DATATYPES, InferenceRequest, RequestedOutput, Tensor
from opensearch_ml_stream.extensions.v2.protocol.request_members import MAX_NAME
from opensearch_ml_stream.rest_handlers.http.responses import plain_error_body

# MLServer's tests/testdata/generate-request.json
GENERATE = {
    "id": "123",
    "parameters": {"content_type": "str"},
    "inputs": [
        {
            "name": "prompt",
            "shape": [1],
            "datatype": "BYTES",
            "data": ["What is the capital of France?"],
            "parameters": {"content_type": "str"},
        }
    ],
    "outputs": [{"name": "output"}],
}

names = st.text(max_size=20)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
)
json_values = st.recursive(
    scalars | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3)
)
parameters = st.dictionaries(names, json_values.filter(lambda value: value is not None), max_size=3)


def read(body: object) -> InferenceRequest:
    return read_request(orjson.dumps(body))[0]


def tensor(**fields: Any) -> dict[str, Any]:
    return {"name": "x", "shape": [1], "datatype": "BYTES", "data": ["a"], **fields}


def read_tensor(**fields: Any) -> Tensor:
    return read({"inputs": [tensor(**fields)]}).inputs[0]


def failure(body: object) -> MLStreamError:
    with pytest.raises(MLStreamError) as raised:
        read_request(body if isinstance(body, bytes) else orjson.dumps(body))
    return raised.value


def test_a_request_of_mlserver_is_read() -> None:
    request, form = read_request(orjson.dumps(GENERATE))
    assert form.dialect is Dialect.TENSORS
    assert request == InferenceRequest(
        [Tensor("prompt", "BYTES", [1], ["What is the capital of France?"], {"content_type": "str"})],
        "123",
        {"content_type": "str"},
        (RequestedOutput("output"),),
    )


def test_what_is_null_is_absent() -> None:
    fields = {"parameters": {"content_type": "str", "headers": None}}
    request = read({"id": None, "parameters": None, "inputs": [tensor(**fields)], "outputs": None, "text_input": None})
    assert request == InferenceRequest([Tensor("x", "BYTES", [1], ["a"], {"content_type": "str"})])
    output = {"name": "y", "parameters": None}
    assert read({"inputs": [tensor(parameters=None)], "outputs": [output]}).outputs == (RequestedOutput("y"),)


@pytest.mark.parametrize(("text", "shape"), [("Hi", [1]), (["Hi"], [1]), (["a", "b"], [2])])
def test_a_text_input_is_one_tensor_and_what_stands_beside_it_parameters(text: object, shape: list[int]) -> None:
    body = {"text_input": text, "id": "7", "max_tokens": 5, "stop_words": None, "parameters": {"temperature": 0.5}}
    request, form = read_request(orjson.dumps(body))
    assert form.dialect is Dialect.TEXT
    data = text if isinstance(text, list) else [text]
    expected = InferenceRequest(
        [Tensor("text_input", "BYTES", shape, data)], "7", {"max_tokens": 5, "temperature": 0.5}
    )
    assert request == expected


def test_a_body_with_inputs_is_of_tensors_whatever_stands_beside_them() -> None:
    assert read_request(orjson.dumps({"inputs": [], "text_input": "a"}))[1].dialect is Dialect.TENSORS


@pytest.mark.parametrize(
    ("shape", "data", "flat"),
    [
        ([2, 2], [[1, 2], [3, 4]], [1, 2, 3, 4]),
        ([2, 2], [1, 2, 3, 4], [1, 2, 3, 4]),
        ([1], 5, [5]),
        ([1, 1], [[[5]]], [5]),
        ([0], [], []),
        ([2, 0], [[], []], []),
        ([], 5, [5]),
        ([3], [1, None, 2.5], [1, None, 2.5]),
    ],
)
def test_data_may_be_nested_or_flat_or_a_bare_value(shape: list[int], data: object, flat: list[object]) -> None:
    read_one = read_tensor(shape=shape, datatype="FP32", data=data)
    assert (read_one.shape, read_one.data) == (shape, flat)


def test_a_length_of_minus_one_follows_from_the_data() -> None:
    assert read_tensor(shape=[-1, 2], datatype="INT8", data=[1, 2, 3, 4]).shape == [2, 2]
    assert read_tensor(shape=[-1], data=["a", "b"]).shape == [2]


def test_a_string_may_be_told_as_the_tensor_of_its_bytes() -> None:
    assert read_tensor(shape=[3], data="hé").shape == [1]


@pytest.mark.parametrize(
    "fields",
    [
        {"shape": [2]},
        {"shape": [0]},
        {"shape": [-1, -1]},
        {"shape": [-1, 0]},
        {"shape": [-1, 2], "data": ["a", "b", "c"]},
        {"shape": [-1, 3], "data": ["a"]},
        {"data": [1]},
        {"data": None},
        {"data": {"a": 1}},
        {"shape": [2], "data": [["a"], "b"]},
        {"datatype": "FP32", "data": ["1"]},
        {"datatype": "BOOL", "data": ["true"]},
        {"shape": [1] * 33},
        pytest.param({"data": orjson.Fragment("[" * 40 + '"a"' + "]" * 40)}, id="too deep"),
    ],
    ids=str,
)
def test_data_that_does_not_fit_is_a_400_or_422_that_tells_no_text(fields: dict[str, Any]) -> None:
    error = failure({"inputs": [tensor(**fields)]})
    assert error.status == (422 if fields == {"data": None} else 400)
    assert "Tensor" in error.reason or "tensor" in error.reason or "data" in error.reason


def test_an_unknown_datatype_is_told_in_mlservers_words() -> None:
    error = failure({"inputs": [tensor(datatype="INVALID")]})
    message = (
        "Input should be 'BOOL', 'UINT8', 'UINT16', 'UINT32', 'UINT64', 'INT8', 'INT16', 'INT32', 'INT64', 'FP16', "
        "'FP32', 'FP64' or 'BYTES'"
    )
    assert orjson.loads(plain_error_body(error)) == {
        "error": f"inputs.0.datatype: {message}",
        "detail": [{"type": "enum", "loc": ["body", "inputs", 0, "datatype"], "msg": message}],
    }


@pytest.mark.parametrize(
    ("body", "place", "kind"),
    [
        ({}, ["inputs"], "missing"),
        ({"inputs": None}, ["inputs"], "missing"),
        ({"inputs": {}}, ["inputs"], "list_type"),
        ({"inputs": ["a"]}, ["inputs", 0], "dict_type"),
        ({"inputs": [tensor(name=None)]}, ["inputs", 0, "name"], "missing"),
        ({"inputs": [tensor(name=1)]}, ["inputs", 0, "name"], "string_type"),
        ({"inputs": [tensor(name="n" * (MAX_NAME + 1))]}, ["inputs", 0, "name"], "string_too_long"),
        ({"inputs": [tensor(shape=1)]}, ["inputs", 0, "shape"], "list_type"),
        ({"inputs": [tensor(shape=[1.5])]}, ["inputs", 0, "shape", 0], "int_type"),
        ({"inputs": [tensor(shape=[True])]}, ["inputs", 0, "shape", 0], "int_type"),
        ({"inputs": [tensor(shape=[-2])]}, ["inputs", 0, "shape", 0], "int_type"),
        ({"inputs": [tensor(datatype=[])]}, ["inputs", 0, "datatype"], "enum"),
        ({"inputs": [tensor(parameters=[])]}, ["inputs", 0, "parameters"], "dict_type"),
        ({"inputs": [], "id": 5}, ["id"], "string_type"),
        ({"inputs": [], "outputs": {}}, ["outputs"], "list_type"),
        ({"inputs": [], "outputs": [{}]}, ["outputs", 0, "name"], "missing"),
        ({"text_input": 5}, ["text_input"], "string_type"),
        ({"text_input": ["a", 5]}, ["text_input"], "string_type"),
        ([], [], "dict_type"),
        (b'{"a"', [4], "json_invalid"),
        (b"", [0], "json_invalid"),
    ],
)
def test_a_body_that_is_no_request_says_where_as_fastapi_does(body: object, place: list[object], kind: str) -> None:
    error = failure(body)
    assert isinstance(error, InvalidBody)
    assert (error.status, error.detail[0]["loc"], error.detail[0]["type"]) == (422, ["body", *place], kind)


def test_half_of_a_surrogate_pair_is_no_json() -> None:
    error = failure(b'{"inputs":"\\ud800"}')
    assert isinstance(error, InvalidBody)
    assert (error.status, error.detail[0]["type"]) == (422, "json_invalid")


@pytest.mark.parametrize("body", [b"\xff", b'{"inputs":' + b"[" * 300 + b"]" * 300 + b"}", b"[" * 2000 + b"]" * 2000])
def test_a_body_beyond_the_bounds_of_json_is_refused(body: bytes) -> None:
    assert failure(body).status in (400, 422)


@pytest.mark.parametrize(
    ("shape", "data"),
    [([8, 224, 224, 3], [[[[0.25, 1.5, 2.0]] * 224] * 224] * 8), ([3_000_000], [0.5] * 3_000_000)],
    ids=["eight images", "three million floats"],
)
def test_as_many_numbers_are_read_as_mlserver_takes(shape: list[int], data: list[Any]) -> None:
    request = read({"inputs": [tensor(shape=shape, datatype="FP32", data=data)]})
    assert len(request.inputs[0].data) == prod(shape)


@pytest.mark.parametrize(("value", "count"), [(b"1", 6_300_000), (b'"ab"', 2_100_000)], ids=str)
def test_a_body_whose_values_take_more_memory_than_a_request_may_have_is_refused(value: bytes, count: int) -> None:
    with pytest.raises(InvalidRequest, match="would take more than 192 MiB of memory"):
        read_request(b'{"inputs":[' + (value + b",") * count + b"0]}")


@pytest.mark.parametrize("container", [b"[]", b'{"":1}', b"[[[]]]"], ids=repr)
def test_a_body_of_so_many_arrays_and_objects_is_refused_before_they_are_made(container: bytes) -> None:
    with pytest.raises(
        InvalidRequest, match=r"may hold \d+ arrays and objects; this one has \d+: write the data .* flat"
    ):
        read_request(b'{"inputs":[' + (container + b",") * 100_000 + b"0]}")


def test_data_may_be_in_rows_of_two_numbers() -> None:
    rows = [[0.5, 1.25]] * 30_000
    body = {"inputs": [{"name": "a", "shape": [30_000, 2], "datatype": "FP64", "data": rows}]}
    (read,) = read_request(orjson.dumps(body))[0].inputs
    assert len(read.data) == 60_000


@given(
    datatype=st.sampled_from(DATATYPES),
    shape=st.lists(st.integers(0, 3), max_size=3),
    fields=parameters,
    elements=st.data(),
)
def test_a_tensor_that_is_written_is_read_as_it_was(
    datatype: str, shape: list[int], fields: dict[str, Any], elements: st.DataObject
) -> None:
    count = 1
    for length in shape:
        count *= length
    one = st.text(max_size=5) if datatype == "BYTES" else scalars
    data = elements.draw(st.lists(one, min_size=count, max_size=count))
    written = Tensor("x", datatype, shape, data, fields)
    assert read({"inputs": [tensor_object(written)]}).inputs == [written]


@given(body=st.dictionaries(st.sampled_from(["inputs", "text_input", "id", "parameters", "outputs"]), json_values))
def test_any_body_is_a_request_or_a_clear_error(body: dict[str, Any]) -> None:
    try:
        read(body)
    except MLStreamError as error:
        assert error.status in (400, 422)
