"""Requests and responses as JSON, as MLServer's REST port has them."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from opensearch_ml_stream.runtimes.interface import json_bytes, types, wire
from opensearch_ml_stream.runtimes.interface.types import InferenceResponse, Parameters, ResponseOutput

Encode = Callable[[Any], bytes]


class Array:
    """What arrays of NumPy, PyTorch and others have in common."""

    def __init__(self, *values: float) -> None:
        self._values = values

    def tolist(self) -> list[float]:
        return list(self._values)


def output(*data: object, **given: object) -> ResponseOutput:
    return ResponseOutput(name="o", shape=[len(data)], datatype="BYTES", data=list(data), **given)


def encoded(response: object, **given: Any) -> Any:
    return json.loads(wire.encode_response(response, **{"model_name": "of the settings", **given}))


def test_a_response_is_compact_json_without_what_it_does_not_have() -> None:
    parameters = Parameters(content_type="str", unit=None, n=1)
    response = InferenceResponse(
        model_name="m", outputs=[output(b"\xc3\xbc", "b", parameters=parameters)], parameters=None
    )
    assert wire.encode_response(response, model_name="other") == (
        '{"model_name":"m","parameters":{},"outputs":[{"name":"o","shape":[2],"datatype":"BYTES",'
        '"parameters":{"content_type":"str","n":1},"data":["ü","b"]}]}'.encode()
    )


def test_a_response_gets_the_name_and_the_version_that_it_lacks() -> None:
    assert encoded(InferenceResponse(model_name="", outputs=[]), model_version="v1") == {
        "model_name": "of the settings",
        "model_version": "v1",
        "parameters": {},
        "outputs": [],
    }
    own = InferenceResponse(model_name="m", model_version="v2", outputs=[])
    assert encoded(own, model_version="v1")["model_version"] == "v2"


def test_a_response_has_the_requests_identifier_and_else_its_own() -> None:
    response = InferenceResponse(model_name="m", id="own", outputs=[])
    assert encoded(response, request_id="asked")["id"] == "asked"
    assert encoded(response)["id"] == "own"
    assert "id" not in encoded(InferenceResponse(model_name="m", outputs=[]))
    assert response.id == "own"


def test_fields_that_a_model_assigned_are_sent_whatever_they_are() -> None:
    response = InferenceResponse(model_name="m", outputs=[output()])
    response.outputs[0].data = Array(1, 2)  # type: ignore[assignment]
    response.outputs.append({"name": "p", "data": (b"x",)})  # type: ignore[arg-type]
    response.outputs[0].parameters = Parameters(nested=[Parameters(content_type="a")])
    assert encoded(response)["outputs"] == [
        {
            "name": "o",
            "shape": [0],
            "datatype": "BYTES",
            "parameters": {"nested": [{"content_type": "a"}]},
            "data": [1, 2],
        },
        {"name": "p", "data": ["x"]},
    ]


def test_a_subclass_and_a_dictionary_are_responses_too() -> None:
    class Scored(InferenceResponse):
        score: float = 0.0

    assert encoded(Scored(model_name="m", outputs=[output(b"a")], score="2"))["score"] == 2.0
    assert encoded({"outputs": []}) == {"model_name": "of the settings", "parameters": {}, "outputs": []}


@pytest.mark.parametrize("returned", [None, "text", [1]])
def test_what_is_no_response_is_refused_by_its_type(returned: object) -> None:
    with pytest.raises(TypeError, match=f"returned builtins.{type(returned).__name__}, not an InferenceResponse"):
        wire.encode_response(returned, model_name="m")


def test_what_has_no_form_in_json_is_an_error_that_names_its_type() -> None:
    with pytest.raises(TypeError) as caught:
        wire.encode_response(InferenceResponse(model_name="m", outputs=[output(object())]), model_name="m")
    assert "object has no form in JSON" in f"{caught.value} {caught.value.__cause__}"


def test_a_request_is_read_into_types() -> None:
    tensor = {"name": "x", "shape": [1], "datatype": "BYTES", "data": ["a"], "parameters": {"content_type": "str"}}
    request = wire.decode_request(types, json.dumps({"id": "1", "inputs": [tensor]}).encode())
    assert request == types.InferenceRequest(id="1", inputs=[tensor])


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"{", "Invalid JSON: "),
        (b"\xff", "Invalid JSON: "),
        (b"[]", "Input should be a valid dictionary or instance of InferenceRequest"),
        (b"{}", "inputs: Field required"),
        (
            b'{"inputs": [{"name": "x"}], "id": 1}',
            "id: Input should be a valid string; inputs.0.shape: Field required; ",
        ),
    ],
)
def test_a_malformed_request_is_refused_with_the_reason(payload: bytes, reason: str) -> None:
    with pytest.raises(wire.MalformedRequest) as caught:
        wire.decode_request(types, payload)
    assert str(caught.value).startswith(reason)
    assert caught.value.status_code == 422


@pytest.mark.parametrize("encode", [json_bytes.dumps, lambda value: json_bytes._standard()[0](value, json_bytes.plain)])
def test_json_is_the_same_with_and_without_orjson(encode: Encode) -> None:
    identifier = UUID(int=5)
    values = [
        float("nan"),
        (1, 2.5, True, None),
        Array(1, float("inf")),
        bytearray(b"x"),
        types.State.READY,
        "ü\n",
        {"k": b"v"},
    ]
    expected = '[null,[1,2.5,true,null],[1,null],"x","READY","ü\\n",{"k":"v"}]'
    assert encode(values) == expected.encode()
    assert encode([datetime(2024, 1, 2, 3), identifier]) == f'["2024-01-02T03:00:00","{identifier}"]'.encode()
    with pytest.raises(TypeError):
        encode([object()])
