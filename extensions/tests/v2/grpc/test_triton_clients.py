"""What tells Triton's clients from MLServer's."""

from typing import Any

import pytest

from opensearch_ml_stream.extensions.v2.grpc.inference_messages import ModelInferRequest
from opensearch_ml_stream.extensions.v2.grpc.request_messages import read_head
from opensearch_ml_stream.extensions.v2.grpc.triton_clients import is_tritons_call, wants_status


def request(**parameters: Any) -> Any:
    message = ModelInferRequest(model_name="m")
    for name, value in parameters.items():
        kind = {bool: "bool_param", int: "int64_param", str: "string_param"}[type(value)]
        setattr(message.parameters[name], kind, value)
    return message


@pytest.mark.parametrize(
    ("parameters", "is_tritons", "has_empty_final"),
    [
        ({"triton_enable_empty_final_response": True}, True, True),
        ({"triton_enable_empty_final_response": False}, True, False),
        ({"sequence_id": 7, "sequence_start": True, "sequence_end": False}, True, False),
        ({"sequence_identifier": "x", "my_triton_": True}, False, False),
        ({"temperature": 1, "priority": 1, "timeout": 5, "content_type": "str"}, False, False),
        ({}, False, False),
    ],
)
def test_a_request_shows_it_by_parameters_of_triton_alone(
    parameters: dict[str, Any], is_tritons: bool, has_empty_final: bool
) -> None:
    head = read_head(request(**parameters).SerializeToString())
    assert (head.model_name, head.is_tritons, head.wants_empty_final) == ("m", is_tritons, has_empty_final)


def test_a_parameter_of_a_tensor_is_none_of_the_request() -> None:
    message = ModelInferRequest(model_name="m", raw_input_contents=[b"x"])
    message.inputs.add(name="triton_").parameters["sequence_id"].int64_param = 1
    assert not read_head(message.SerializeToString()).is_tritons


@pytest.mark.parametrize("of", ["request", "tensor", None])
@pytest.mark.parametrize("is_raw", [True, False], ids=["raw", "typed"])
def test_raw_contents_without_a_content_type_are_tritons(of: str | None, is_raw: bool) -> None:
    message = ModelInferRequest(model_name="m", raw_input_contents=[b"x"] if is_raw else [])
    tensor = message.inputs.add(name="content_type")
    if of is not None:
        (message if of == "request" else tensor).parameters["content_type"].string_param = "str"
    assert read_head(message.SerializeToString()).is_bare is (is_raw and of is None)


@pytest.mark.parametrize(
    ("header", "is_tritons", "status"),
    [
        ((b"triton_grpc_error", b"true"), True, True),
        ((b"triton_grpc_error", b"false"), True, False),
        ((b"user-agent", b"grpc-python/1.70"), False, False),
    ],
)
def test_a_call_shows_it_by_metadata_of_triton(header: tuple[bytes, bytes], is_tritons: bool, status: bool) -> None:
    scope = {"headers": [(b"x-api-key", b"k"), header]}
    assert (is_tritons_call(scope), wants_status(scope)) == (is_tritons, status)
