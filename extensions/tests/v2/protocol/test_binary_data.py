"""Contents of tensors behind the JSON of requests and responses, as Triton's clients send and read them."""

import struct
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.extensions.v2.protocol.binary_data import BinaryOutputs
from opensearch_ml_stream.extensions.v2.protocol.json_requests import WrittenForm, read_request
from opensearch_ml_stream.extensions.v2.protocol.json_responses import binary_response_body
from opensearch_ml_stream.extensions.v2.protocol.messages import (
    InferenceRequest,
    InferenceResponse,
    RequestedOutput,
    ResponseShape,
    Tensor,
)

FLOATS = struct.pack("<2f", 0.5, -1.0)
TEXTS = b"\x02\0\0\0Hi" + b"\0\0\0\0" + b"\x01\0\0\0\xff"


def tensor(name: str, datatype: str, shape: list[int], **more: Any) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape, **more}


def sized(size: object, **parameters: Any) -> dict[str, Any]:
    return {"parameters": {"binary_data_size": size, **parameters}}


def read(inputs: list[dict[str, Any]], behind: bytes = b"", **members: Any) -> tuple[InferenceRequest, WrittenForm]:
    head = orjson.dumps({"inputs": inputs, **members})
    return read_request(head + behind, len(head))


def test_contents_behind_the_json_are_taken_in_the_order_of_their_tensors() -> None:
    inputs = [
        tensor("a", "FP32", [2], **sized(8)),
        tensor("b", "INT32", [1], data=[7]),
        tensor("c", "BYTES", [3, 1], **sized(len(TEXTS), content_type="str")),
        tensor("d", "FP32", [0], **sized(0)),
    ]
    request, _ = read(inputs, FLOATS + TEXTS)
    assert [list(one.data) for one in request.inputs] == [[0.5, -1.0], [7], ["Hi", "", b"\xff"], []]
    assert [one.parameters for one in request.inputs] == [{}, {}, {"content_type": "str"}, {}]
    assert request.written_inputs is None


@pytest.mark.parametrize("length", [True, False], ids=["with a length", "without"])
def test_a_body_of_json_alone_is_one_whether_its_length_is_said_or_not(length: bool) -> None:
    inputs = [tensor("a", "INT32", [1], data=[7])]
    body = orjson.dumps({"inputs": inputs})
    request, form = read_request(body, len(body) if length else None)
    assert (request.written_inputs, form) == (inputs, WrittenForm())


@pytest.mark.parametrize(
    ("size", "datatype", "behind", "reason"),
    [
        (9, "FP32", FLOATS, "Tensor a: its binary_data_size must be .* 8 are left"),
        (-1, "FP32", FLOATS, "Tensor a: its binary_data_size"),
        ("8", "FP32", FLOATS, "Tensor a: its binary_data_size"),
        (True, "UINT8", b"\1", "Tensor a: its binary_data_size"),
        (8, "FP32", FLOATS + b"more", "4 bytes behind the JSON of the request belong to no tensor"),
        (7, "FP32", FLOATS[:7], "Tensor a: its raw contents end within an element of FP32"),
        (3, "BYTES", TEXTS[:3], "Tensor a: its raw contents end within an element"),
        (5, "BYTES", b"\xff\xff\xff\xff\0", "Tensor a: its raw contents end within an element"),
        (4, "FP32", FLOATS[:4], "Tensor a: shape .* does not fit its data"),
        (200_000_000, "UINT8", b"", "Tensor a: its binary_data_size must be .* 0 are left"),
    ],
)
def test_contents_that_are_not_there_or_do_not_fit_are_refused(
    size: object, datatype: str, behind: bytes, reason: str
) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        read([tensor("a", datatype, [2], **sized(size))], behind)


@pytest.mark.parametrize("shape", [[-1], [1, -1], [-1, -1]])
def test_each_length_of_contents_behind_the_json_is_said(shape: list[int]) -> None:
    with pytest.raises(InvalidRequest, match="has a length of -1; each length of raw contents must be given"):
        read([tensor("a", "FP32", shape, **sized(8))], FLOATS)


def test_the_json_cannot_be_longer_than_the_body() -> None:
    with pytest.raises(InvalidRequest, match=r"Inference-Header-Content-Length is 3; the body has 2"):
        read_request(b"{}", 3)


def test_json_and_contents_behind_it_share_one_bound_of_memory() -> None:
    numbers, count = [0] * 3_500_000, 3_000_000
    inputs = [tensor("a", "INT32", [len(numbers)], data=numbers), tensor("b", "INT32", [count], **sized(4 * count))]
    with pytest.raises(InvalidRequest, match="would take more than 192 MiB of memory"):
        read(inputs, bytes(4 * count))


@pytest.mark.parametrize(
    ("parameters", "outputs", "wanted"),
    [
        ({"binary_data_output": True}, {}, {"a": True, "b": True}),
        ({"binary_data_output": True}, {"a": {"binary_data": False}}, {"a": False, "b": True}),
        ({}, {"a": {"binary_data": True}, "b": {}}, {"a": True, "b": False}),
        ({"binary_data_output": False}, {"a": {"binary_data": True}}, {"a": True, "b": False}),
        ({"binary_data_output": "yes"}, {"a": {"binary_data": 1}}, {"a": False, "b": False}),
    ],
    ids=str,
)
def test_the_client_says_which_outputs_it_wants_so_and_the_model_hears_nothing_of_it(
    parameters: dict[str, Any], outputs: dict[str, dict[str, Any]], wanted: dict[str, bool]
) -> None:
    named = [{"name": name, "parameters": {"k": 1, **of_one}} for name, of_one in outputs.items()]
    request, form = read([tensor("a", "INT32", [1], data=[7])], parameters={"k": 2, **parameters}, outputs=named)
    assert {name: form.binary.has(name) for name in ("a", "b")} == wanted
    assert bool(form.binary) is any(wanted.values())
    assert request.parameters == {"k": 2}
    assert list(request.outputs) == [RequestedOutput(name, {"k": 1}) for name in outputs]


def test_a_response_has_the_wanted_contents_behind_its_json_in_their_order() -> None:
    outputs = [
        Tensor("a", "FP32", [2], [0.5, -1.0], {"k": 1}),
        Tensor("b", "INT32", [1], [7]),
        Tensor("c", "BYTES", [3], ["Hi", "", b"\xff"]),
    ]
    response = InferenceResponse(ResponseShape("m", "1", "r"), outputs, {"finish_reason": "stop"})
    body, length = binary_response_body(response, BinaryOutputs(True, {"b": False}))
    assert body[length:] == FLOATS + TEXTS
    assert orjson.loads(body[:length]) == {
        "model_name": "m",
        "model_version": "1",
        "id": "r",
        "parameters": {"finish_reason": "stop"},
        "outputs": [
            tensor("a", "FP32", [2], **sized(8, k=1)),
            tensor("b", "INT32", [1], data=[7]),
            tensor("c", "BYTES", [3], **sized(len(TEXTS))),
        ],
    }


def test_a_models_numbers_that_do_not_fit_their_datatype_are_its_fault() -> None:
    response = InferenceResponse(ResponseShape("m", None, "r"), [Tensor("a", "UINT8", [1], [256])])
    with pytest.raises(UpstreamError, match="The response's tensor a has data that is not UINT8"):
        binary_response_body(response, BinaryOutputs(True))
