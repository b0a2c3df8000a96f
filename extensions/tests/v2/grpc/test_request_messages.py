import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.v2.grpc.inference_messages import ModelInferRequest, RepositoryModelLoadRequest
from opensearch_ml_stream.extensions.v2.grpc.request_messages import RequestHead, inference_request, read_head
from opensearch_ml_stream.extensions.v2.grpc.response_messages import infer_response
from opensearch_ml_stream.extensions.v2.protocol import tensor_checks
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceResponse, ResponseShape, Tensor
from opensearch_ml_stream.plugin.grpc_port.messages import MAX_SMALL_BYTES, parse

NUMBERS: dict[str, list[Any]] = {
    "BOOL": [True, False], "UINT8": [0, 255], "UINT16": [65_535], "UINT32": [2**32 - 1], "UINT64": [2**64 - 1],
    "INT8": [-128, 127], "INT16": [-1], "INT32": [-(2**31)], "INT64": [-(2**63)], "FP16": [0.5, -2.0], "FP32": [0.25],
    "FP64": [0.1],
}  # fmt: skip


def round_trip(tensor: Tensor, *, is_raw: bool) -> Tensor:
    """The tensor as a response's message holds it, read as that of a request: their fields are the same."""
    response = InferenceResponse(ResponseShape("m", "1", "i"), [tensor])
    message = ModelInferRequest()
    written = infer_response(response, is_raw=is_raw)
    for output in written.outputs:
        message.inputs.add().MergeFromString(output.SerializeToString())
    message.raw_input_contents.extend(written.raw_output_contents)
    return inference_request(message, {}).inputs[0]


def request(**tensor: Any) -> Any:
    message = ModelInferRequest()
    message.inputs.add(**{"name": "x", "datatype": "BYTES", "shape": [1], **tensor})
    return message


def refusal(message: Any) -> str:
    with pytest.raises(InvalidRequest) as refused:
        inference_request(message, {})
    return refused.value.reason


@pytest.mark.parametrize("is_raw", [False, True])
@pytest.mark.parametrize("datatype", NUMBERS)
def test_numbers_are_read_as_they_were_written(datatype: str, is_raw: bool) -> None:
    data = NUMBERS[datatype]
    tensor = round_trip(Tensor("x", datatype, [len(data)], data, {"content_type": "np"}), is_raw=is_raw)
    assert (list(tensor.data), list(tensor.shape), tensor.parameters) == (data, [len(data)], {"content_type": "np"})


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])) | st.just(b"\xff\x00")), st.booleans())
def test_texts_are_strings_and_other_bytes_stay_bytes(data: list[str | bytes], is_raw: bool) -> None:
    assert list(round_trip(Tensor("x", "BYTES", [len(data)], data), is_raw=is_raw).data) == data


def test_raw_contents_are_those_of_the_tensors_without_contents() -> None:
    message = request(contents={"bytes_contents": [b"a"]})
    message.inputs.add(name="y", datatype="INT32", shape=[2])
    message.raw_input_contents.append(struct.pack("<2i", 1, 2))
    assert [list(tensor.data) for tensor in inference_request(message, {}).inputs] == [["a"], [1, 2]]


def test_parameters_ids_and_outputs_are_read_and_headers_join_the_parameters() -> None:
    message = request(contents={"bytes_contents": [b"a"]})
    message.id = "7"
    message.parameters["temperature"].double_param = 0.5
    message.parameters["max_tokens"].int64_param = 5
    message.parameters["nothing"].SetInParent()
    message.outputs.add(name="out").parameters["binary"].bool_param = True
    read = inference_request(message, {"ce-id": "1"})
    assert read.parameters == {"temperature": 0.5, "max_tokens": 5, "headers": {"ce-id": "1"}}
    assert (read.id, read.outputs[0].name, read.outputs[0].parameters) == ("7", "out", {"binary": True})


@pytest.mark.parametrize(
    ("tensor", "raw", "problem"),
    [
        ({"datatype": "TEXT"}, [], "its datatype must be one of BOOL"),
        ({}, [], "does not fit its data"),
        ({"contents": {"bytes_contents": [b"a"], "int_contents": [1]}}, [], "in several fields"),
        ({"contents": {"int64_contents": [1]}}, [], "the data of datatype BYTES must be strings"),
        ({"datatype": "INT64", "contents": {"bytes_contents": [b"a"]}}, [], "of datatype INT64 must be numbers"),
        ({"contents": {"bytes_contents": [b"a"]}}, [b""], "1 entries more than there are inputs"),
        ({}, [b"\5\0\0\0a"], "end within an element"),
        ({}, [b"\1\0"], "end within an element"),
        ({"datatype": "INT32"}, [b"\1\0"], "end within an element of INT32"),
        ({"shape": [1] * 33}, [b"\0\0\0\0"], "32 dimensions at most"),
        ({"shape": [-2]}, [b"\0\0\0\0"], "each -1, 0 or more"),
        ({"shape": [-1]}, [b"\0\0\0\0"], "has a length of -1; each length of raw contents must be given"),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused(tensor: Any, raw: list[bytes], problem: str) -> None:
    message = request(**tensor)
    message.raw_input_contents.extend(raw)
    assert problem in refusal(message)


@pytest.mark.parametrize("is_raw", [False, True])
def test_elements_are_counted_before_they_are_made(is_raw: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_checks, "MAX_BYTES", 4 * tensor_checks.TEXT_BYTES)
    message = request(shape=[5], contents={} if is_raw else {"bytes_contents": [b""] * 5})
    if is_raw:
        message.inputs[0].ClearField("contents")
        message.raw_input_contents.append(b"\0\0\0\0" * 5)
    assert "tensors would take more than" in refusal(message)


def test_bytes_that_are_no_message_are_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"The message is not of type inference\.ModelInferRequest"):
        parse(ModelInferRequest, b"\x0a\xff")


@pytest.mark.parametrize("size", [MAX_SMALL_BYTES, MAX_SMALL_BYTES + 1])
def test_a_message_that_only_names_a_model_is_a_small_one(size: int) -> None:
    """Each distinct name of a parameter costs the event loop time, and 10 MiB may come in as few kilobytes."""
    data = RepositoryModelLoadRequest(model_name="x" * (size - 4)).SerializeToString()
    assert len(data) == size
    if size <= MAX_SMALL_BYTES:
        assert parse(RepositoryModelLoadRequest, data).model_name
    else:
        with pytest.raises(
            InvalidRequest, match=r"RepositoryModelLoadRequest may have 65536 bytes; this one has 65537"
        ):
            parse(RepositoryModelLoadRequest, data)


def test_parameters_of_any_kind_are_written() -> None:
    parameters = {"a": True, "b": 1, "c": 0.5, "d": "x", "e": None, "f": {"g": {"h": 2}}, "i": [1, "2"], "j": 2**70}
    response = InferenceResponse(ResponseShape("m", None, ""), [Tensor("x", "FP32", [1], [None])], parameters)
    written: Any = infer_response(response, is_raw=False)
    shown = {name: getattr(entry, entry.WhichOneof("parameter_choice")) for name, entry in written.parameters.items()}
    assert shown == {"a": True, "b": 1, "c": 0.5, "d": "x", "f.g.h": 2, "i": '[1,"2"]', "j": str(2**70)}
    assert str(written.outputs[0].contents.fp32_contents[0]) == "nan"


def test_the_head_of_a_request_is_known_before_its_tensors_are_read() -> None:
    message = request(contents={"bytes_contents": [b"a"]})
    message.model_name, message.model_version = "m", "2"
    assert read_head(message.SerializeToString()) == RequestHead("m", "2", is_raw=False)
    message.raw_input_contents.append(b"")
    assert read_head(message.SerializeToString() + b"\x0a\1n") == RequestHead("n", "2", is_raw=True)
    assert read_head(b"") == RequestHead("", "", is_raw=False)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\x0a\xff", "not a protobuf message"),
        (b"\x0a\1\xff", "model_name is not UTF-8"),
        (b"\x2a\0" * 40_001, "40000 fields"),
    ],
)
def test_a_request_without_a_head_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        read_head(data)


@pytest.mark.parametrize(
    ("datatype", "contents", "raw"),
    [
        ("INT64", {"int64_contents": [1] * 3}, None), ("FP32", {"fp32_contents": [1] * 3}, None),
        ("BYTES", {"bytes_contents": [b""] * 3}, None), ("INT8", {"int_contents": [1] * 3}, None),
        ("FP64", {}, bytes(24)), ("UINT8", {}, bytes(3)), ("BYTES", {}, bytes(12)), ("FP16", {}, bytes(6)),
    ],
)  # fmt: skip
def test_all_tensors_of_a_request_share_one_bound_however_they_came(
    datatype: str, contents: dict[str, Any], raw: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = {"BYTES": tensor_checks.TEXT_BYTES, "INT8": 8, "UINT8": 8}.get(datatype, tensor_checks.NUMBER_BYTES)
    monkeypatch.setattr(tensor_checks, "MAX_BYTES", 6 * each)
    message = ModelInferRequest()
    for tensors in range(1, 4):
        message.inputs.add(name=f"{tensors}", datatype=datatype, shape=[3], contents=contents or None)
        message.raw_input_contents.extend([] if raw is None else [raw])
        if tensors < 3:
            assert len(inference_request(message, {}).inputs) == tensors
    assert "tensors would take more than" in refusal(message)
